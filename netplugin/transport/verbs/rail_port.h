// Which port of which RDMA device a rail is.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_RAIL_PORT_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_RAIL_PORT_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/core/verbs/verbs.h"
#include "netplugin/rails/rails.h"

namespace r2cc::net::verbs {

// A port, and what it says of the network interfaces that it stands behind.
struct PortFacts {
  std::string device;
  uint8_t port = 1;
  std::string pci;                   // of the device
  std::string interface;             // of soft-RoCE
  std::vector<uint32_t> interfaces;  // of its GIDs, by index; none while these have no address
};

// All ports of all devices. Opens each device for a moment; one that cannot be opened is left out, and `*error` says why of the last one.
// MAY BLOCK.
std::vector<PortFacts> ListPorts(Verbs* verbs, std::string* error);

// The port whose GIDs are of the rail's interface, or that was made on it; else the only port of the rail's PCI function, as long as its
// GIDs name no interface, as on InfiniBand. Nothing: the rail has no RDMA device. Pure.
std::optional<PortFacts> PortOfRail(const Rail& rail, std::span<const PortFacts> ports);

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_RAIL_PORT_H_
