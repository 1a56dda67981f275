// Fakes a machine for tests.
#ifndef R2CC_NETPLUGIN_RAILS_FAKE_HOST_NETWORK_H_
#define R2CC_NETPLUGIN_RAILS_FAKE_HOST_NETWORK_H_

#include <functional>
#include <string>
#include <vector>

#include "netplugin/rails/host_network.h"

namespace r2cc::net {

class FakeHostNetwork final : public HostNetwork {
 public:
  std::vector<HostInterface> Interfaces() override { return interfaces; }
  uint64_t NetnsInode() override { return netns_inode; }
  bool AnswersForOthers(const std::string&) override { return answers_for_others; }
  int RouteInterface(const IpAddress& from, const std::string&) override { return leaves_by(from.text); }
  std::string PciPath(const std::string& pci) override { return pci.empty() ? "" : "/sys/devices/pci0000:00/" + pci; }

  // Adds an interface that is up, with a MAC of its own; change the result as the test needs it (valid until the next Add).
  HostInterface& Add(const std::string& name, const std::vector<std::string>& addresses = {}) {
    HostInterface interface;
    interface.name = name;
    interface.ifindex = static_cast<int>(interfaces.size()) + 1;
    interface.loopback = name == "lo";
    interface.admin_up = interface.carrier_up = true;
    if (!interface.loopback) interface.mac = {2, 0, 0, 0, 0, static_cast<uint8_t>(interface.ifindex)};
    for (const std::string& text : addresses) interface.addresses.push_back(ParseIpAddress(text, interface.ifindex).value());
    interfaces.push_back(interface);
    return interfaces.back();
  }

  // The same, with a PCI device behind it.
  HostInterface& AddNic(const std::string& name, const std::string& pci, const std::vector<std::string>& addresses = {}) {
    HostInterface& interface = Add(name, addresses);
    interface.device_path = "/sys/devices/pci0000:00/" + pci;
    interface.speed_mbps = 100'000;
    return interface;
  }

  std::vector<HostInterface> interfaces;
  bool answers_for_others = false;
  std::function<int(const std::string& from)> leaves_by = [](const std::string&) { return 0; };
  uint64_t netns_inode = 4026531840;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_RAILS_FAKE_HOST_NETWORK_H_
