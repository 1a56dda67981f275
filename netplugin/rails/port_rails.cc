#include "netplugin/rails/port_rails.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/core/glob.h"

namespace r2cc::net {
namespace {

bool Names(const std::string& item, const verbs::PortFacts& port) {
  // Only an item with a number is compared with one: "*1" is no first port of "mlx5_0".
  const bool has_number = item.find(':') != std::string::npos;
  return GlobFits(item, has_number ? port.device + ":" + std::to_string(port.port) : port.device);
}

}  // namespace

std::string PortName(const verbs::PortFacts& port, std::span<const verbs::PortFacts> ports) {
  const auto of_device = [&](const verbs::PortFacts& other) { return other.device == port.device; };
  return std::count_if(ports.begin(), ports.end(), of_device) > 1 ? port.device + ":" + std::to_string(port.port) : port.device;
}

std::vector<verbs::PortFacts> PortsNamed(const std::string& item, std::span<const verbs::PortFacts> ports) {
  std::vector<verbs::PortFacts> named;
  for (const verbs::PortFacts& port : ports)
    if (Names(item, port)) named.push_back(port);
  return named;
}

Rail RailOfPort(const verbs::PortFacts& port, const std::string& name, HostNetwork& host) {
  Rail rail;
  rail.name = name;
  rail.device = port.device;
  rail.port = port.port;
  rail.port_active = port.active;
  rail.pci = port.pci;
  rail.pci_path = host.PciPath(port.pci);
  rail.guid = port.guid;
  if (port.bits_per_s > 0) rail.speed_mbps = static_cast<int>(port.bits_per_s / 1e6);
  rail.up = true;
  return rail;
}

std::vector<verbs::PortFacts> FreePorts(const std::vector<const HostInterface*>& taken, std::span<const verbs::PortFacts> ports,
                                        std::span<const std::string> excluded) {
  std::set<std::pair<std::string, uint8_t>> of_interfaces;
  for (const HostInterface* const interface : taken) {
    const auto port = verbs::PortOfInterface({interface->ifindex, interface->name, PciFunctionOf(interface->device_path).address}, ports);
    if (port) of_interfaces.emplace(port->device, port->port);
  }
  std::vector<verbs::PortFacts> free;
  for (const verbs::PortFacts& port : ports) {
    const bool out = std::any_of(excluded.begin(), excluded.end(), [&](const std::string& item) { return Names(item, port); });
    if (!out && !of_interfaces.contains({port.device, port.port})) free.push_back(port);
  }
  return free;
}

}  // namespace r2cc::net
