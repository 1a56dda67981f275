#include "base/core/verbs/port_facts.h"

#include <algorithm>

namespace r2cc::verbs {

PortFacts ReadPortFacts(Verbs* verbs, ContextId context, const DeviceInfo& device, uint8_t port) {
  PortFacts facts{.device = device.name, .port = port, .pci = device.pci, .interface = device.interface, .interfaces = {}};
  PortInfo info;
  if (verbs->QueryPort(context, port, &info) == 0) {
    facts.active = info.state == PortState::kActive;
    facts.bits_per_s = info.bits_per_second;
  }
  std::vector<GidEntry> gids;
  verbs->QueryGids(context, port, &gids);
  for (const GidEntry& gid : gids)
    if (gid.interface_index != 0) facts.interfaces.push_back(gid.interface_index);
  for (const GidEntry& gid : gids)
    if (gid.index == 0)
      for (size_t i = gid.gid.size() / 2; i < gid.gid.size(); ++i) facts.guid = facts.guid << 8 | gid.gid[i];
  return facts;
}

std::optional<PortFacts> PortOfInterface(const InterfaceFacts& interface, std::span<const PortFacts> ports) {
  if (interface.index == 0) return std::nullopt;
  for (const PortFacts& port : ports)
    if (std::count(port.interfaces.begin(), port.interfaces.end(), static_cast<uint32_t>(interface.index)) > 0) return port;
  for (const PortFacts& port : ports)
    if (!port.interface.empty() && port.interface == interface.name) return port;
  if (interface.pci.empty()) return std::nullopt;
  const auto same = [&](const PortFacts& port) { return port.pci == interface.pci; };
  if (std::count_if(ports.begin(), ports.end(), same) != 1) return std::nullopt;
  const PortFacts& port = *std::find_if(ports.begin(), ports.end(), same);
  return port.interfaces.empty() ? std::optional(port) : std::nullopt;
}

}  // namespace r2cc::verbs
