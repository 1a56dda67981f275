// Reads the network interfaces of this namespace: the interface between rail choice and the machine.
#ifndef R2CC_NETPLUGIN_RAILS_HOST_NETWORK_H_
#define R2CC_NETPLUGIN_RAILS_HOST_NETWORK_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "netplugin/rails/address.h"

namespace r2cc::net {

struct HostInterface {
  std::string name;
  std::vector<std::string> other_names;  // `ip link property add ... altname`
  int ifindex = 0;
  bool loopback = false;
  bool dummy = false;  // its addresses are this node's, and no packet passes through it
  bool admin_up = false;
  bool carrier_up = false;
  bool bridge = false;
  std::array<uint8_t, 6> mac{};      // zero if it has none of six bytes
  std::vector<IpAddress> addresses;  // in the kernel's order
  std::string device_path;           // sysfs path of the device behind it; empty for virtual ones
  int speed_mbps = 0;                // <= 0: unknown
};

// It has an address for which it may be chosen automatically: see IsRoutable(). Pure.
bool HasRoutableAddress(const HostInterface& interface);
// Packets to and from its addresses use other interfaces: any route that leads to this node reaches an address there. Pure.
inline bool CarriesNothing(const HostInterface& interface) { return interface.loopback || interface.dummy; }

// The innermost PCI function on the path to a device, as its sysfs path and its address, "0000:81:00.0". A virtio NIC's device, for
// example, is below it. Empty: there is none. Pure.
struct PciFunction {
  std::string path, address;
};
PciFunction PciFunctionOf(std::string device_path);

class HostNetwork {
 public:
  virtual ~HostNetwork() = default;
  // All interfaces, by ifindex; empty if the kernel does not answer.
  virtual std::vector<HostInterface> Interfaces() = 0;
  // That of the calling thread; 0 if unknown.
  virtual uint64_t NetnsInode() = 0;
  // The interface answers ARP for addresses of other interfaces of this node, which is the default of Linux.
  virtual bool AnswersForOthers(const std::string& interface) = 0;
  // The ifindex of the interface by which packets from an address of this node leave for another's, from a socket that is bound to none. 0:
  // unknown.
  virtual int RouteInterface(const IpAddress& from, const std::string& to) = 0;
  // The sysfs path of a PCI function, "0000:81:00.0"; empty: there is none.
  virtual std::string PciPath(const std::string& pci) = 0;
};

// Reads Netlink, sysfs and sysctls.
class SystemHostNetwork final : public HostNetwork {
 public:
  explicit SystemHostNetwork(std::string sysfs = "/sys") : sysfs_(std::move(sysfs)) {}
  bool AnswersForOthers(const std::string& interface) override;
  int RouteInterface(const IpAddress& from, const std::string& to) override;
  std::vector<HostInterface> Interfaces() override;
  uint64_t NetnsInode() override;
  std::string PciPath(const std::string& pci) override;

 private:
  std::string sysfs_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_RAILS_HOST_NETWORK_H_
