// Holds the facts of /sys about one network port, Ethernet or InfiniBand, as values.
#ifndef R2CC_HEALTH_IO_SYSFS_PORT_FACTS_H_
#define R2CC_HEALTH_IO_SYSFS_PORT_FACTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "health/io/sysfs.h"

namespace r2cc::health {

struct SysfsPortFacts {
  // The interface's name; empty if there is none.
  int ifindex = 0;
  std::optional<uint64_t> carrier_changes;
  std::string mac;
  std::string pci;                        // "0000:81:00.0"; of a bond: its first member's; empty: not on PCI
  std::vector<std::string> bond_members;  // interfaces; empty: no bond

  uint64_t rate_bits_per_s = 0;  // 0: unknown

  // The RDMA device on the same PCI function (for a bond: on one of its members' functions).
  std::string rdma_device;          // "mlx5_0"; empty: none
  uint32_t rdma_port = 0;           // from 1
  bool infiniband = false;          // false: Ethernet (RoCE), or no RDMA device
  std::optional<bool> rdma_active;  // the port's logical state is ACTIVE: the subnet manager has brought it up, or the link is there
  std::string rdma_state;           // "ACTIVE", "INIT", "DOWN", ...
  uint64_t port_guid = 0;           // InfiniBand only
  // InfiniBand only: the port's local identifier and that of its subnet manager; 0: none yet.
  uint16_t lid = 0;
  uint16_t sm_lid = 0;
  uint8_t sm_service_level = 0;
  std::optional<uint64_t> packets;  // sent and received since the device was made

  // Counters of errors and of retransmissions, by name ("rx_crc_errors", "symbol_error", "packet_seq_err"). Drops and overruns are left
  // out: a full queue is not a fault.
  std::map<std::string, uint64_t> errors;
};

// Reads the facts of `interface`. NotFound if /sys does not show it (or shows another network namespace). Facts that cannot be read
// stay empty.
absl::StatusOr<SysfsPortFacts> ReadSysfsPortFacts(const Sysfs& sysfs, const std::string& interface);

// The same of the InfiniBand port with this GUID, which need not have an interface. NotFound if there is none.
absl::StatusOr<SysfsPortFacts> ReadInfinibandFacts(const Sysfs& sysfs, uint64_t port_guid);

// "0x0002c9030000abcd" or "0002:c903:0000:abcd" as a number; 0 if it is neither.
uint64_t ParseGuid(const std::string& text);

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_IO_SYSFS_PORT_FACTS_H_
