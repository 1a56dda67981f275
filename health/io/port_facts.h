// What /sys says of one network port, as values.
#ifndef R2CC_HEALTH_IO_PORT_FACTS_H_
#define R2CC_HEALTH_IO_PORT_FACTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "health/io/sysfs.h"

namespace r2cc::health {

struct PortFacts {
  int ifindex = 0;
  std::string operstate;        // "up", "down", "lowerlayerdown", ...
  std::optional<bool> carrier;  // nothing: cannot be read while the interface is down
  std::optional<uint64_t> carrier_changes;
  uint64_t rate_bits_per_s = 0;  // 0: unknown
  std::string mac;
  std::string pci;          // "0000:81:00.0"; empty: not on PCI
  std::string rdma_device;  // "mlx5_0"; empty: none on the same PCI function
  // Counters of errors, by name ("rx_crc_errors", "symbol_error"). Drops are left out: a full queue is not a fault.
  std::map<std::string, uint64_t> errors;
};

// Reads the facts of `interface`. NotFound if /sys does not show it (or shows another network namespace). Facts that cannot be read
// stay empty.
absl::StatusOr<PortFacts> ReadPortFacts(const Sysfs& sysfs, const std::string& interface);

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_IO_PORT_FACTS_H_
