// Finds the port of an RDMA device that belongs to a network interface.
#ifndef R2CC_BASE_CORE_VERBS_PORT_FACTS_H_
#define R2CC_BASE_CORE_VERBS_PORT_FACTS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/core/verbs/verbs.h"

namespace r2cc::verbs {

// A port, with its facts about the network interfaces that belong to it.
struct PortFacts {
  std::string device;
  uint8_t port = 1;
  std::string pci;                   // of the device
  std::string interface;             // of soft-RoCE
  std::vector<uint32_t> interfaces;  // of its GIDs, by index; none while these have no address
  uint64_t guid = 0;                 // the port's own, of its first GID, host byte order; 0: it has none
  bool active = false;
  double bits_per_s = 0;  // 0: unknown

  friend bool operator==(const PortFacts&, const PortFacts&) = default;
};

// The facts of an open device. One that cannot be read stays empty. MAY BLOCK.
PortFacts ReadPortFacts(Verbs* verbs, ContextId context, const DeviceInfo& device, uint8_t port);

struct InterfaceFacts {
  int index = 0;  // 0: there is none
  std::string name;
  std::string pci;  // its PCI function: "0000:81:00.0"; empty: none
};

// The port whose GIDs are of the interface, or that was made on it; else the only port of the interface's PCI function, as long as its
// GIDs name no interface, as on InfiniBand. Nothing: the interface has no RDMA device. Pure.
std::optional<PortFacts> PortOfInterface(const InterfaceFacts& interface, std::span<const PortFacts> ports);

}  // namespace r2cc::verbs

#endif  // R2CC_BASE_CORE_VERBS_PORT_FACTS_H_
