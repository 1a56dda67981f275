#include "netplugin/transport/verbs/rail_port.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace r2cc::net::verbs {

std::vector<PortFacts> ListPorts(Verbs* verbs, std::string* error) {
  std::vector<PortFacts> ports;
  std::vector<DeviceInfo> devices;
  if (const int failed = verbs->Devices(&devices); failed != 0)
    *error = std::string("R2CC: cannot list the RDMA devices: ") + std::strerror(failed);
  for (const DeviceInfo& device : devices) {
    ContextId context{};
    int async_fd = -1;
    if (const int failed = verbs->Open(device.name, &context, &async_fd); failed != 0) {
      *error = "R2CC: cannot open the RDMA device " + device.name + ": " + std::strerror(failed);
      // rdma-core looks for the file elsewhere when it may not open it, and says that there is none.
      if (failed == EACCES || failed == EPERM || failed == ENOENT)
        *error += "; allow this user to open /dev/infiniband/uverbs*, or set R2CC_TRANSPORT=tcp";
      continue;
    }
    DeviceLimits limits;
    verbs->QueryDevice(context, &limits);
    for (uint8_t port = 1; port <= limits.ports; ++port) {
      PortFacts facts{.device = device.name, .port = port, .pci = device.pci, .interface = device.interface, .interfaces = {}};
      std::vector<GidEntry> gids;
      verbs->QueryGids(context, port, &gids);
      for (const GidEntry& gid : gids)
        if (gid.interface_index != 0) facts.interfaces.push_back(gid.interface_index);
      ports.push_back(std::move(facts));
    }
    verbs->Close(context);
  }
  return ports;
}

std::optional<PortFacts> PortOfRail(const Rail& rail, std::span<const PortFacts> ports) {
  if (rail.ifindex == 0) return std::nullopt;
  for (const PortFacts& port : ports)
    if (std::count(port.interfaces.begin(), port.interfaces.end(), static_cast<uint32_t>(rail.ifindex)) > 0) return port;
  for (const PortFacts& port : ports)
    if (!port.interface.empty() && port.interface == rail.interface) return port;
  if (rail.pci.empty()) return std::nullopt;
  const auto same = [&](const PortFacts& port) { return port.pci == rail.pci; };
  if (std::count_if(ports.begin(), ports.end(), same) != 1) return std::nullopt;
  const PortFacts& port = *std::find_if(ports.begin(), ports.end(), same);
  return port.interfaces.empty() ? std::optional(port) : std::nullopt;
}

}  // namespace r2cc::net::verbs
