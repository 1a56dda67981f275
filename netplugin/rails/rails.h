// Which rails this process has, from R2CC_RAILS and the machine.
#ifndef R2CC_NETPLUGIN_RAILS_RAILS_H_
#define R2CC_NETPLUGIN_RAILS_RAILS_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/core/verbs/port_facts.h"
#include "netplugin/rails/address.h"
#include "netplugin/rails/host_network.h"

namespace r2cc::net {

// As many as an attach request names.
constexpr size_t kRailsMax = 32;
// What NCCL assumes, too, of a NIC that does not say.
constexpr int kUnknownSpeedMbps = 10'000;

struct Rail {
  std::string name;            // as in R2CC_RAILS, or the interface's, or the RDMA port's ("mlx5_0", of several ports "mlx5_0:1")
  int index = 0;               // position among the rails, and NCCL's device number
  std::string interface;       // empty for an address-only rail (a loopback address), and for an RDMA port
  int ifindex = 0;             // 0 for an address-only rail, and for an RDMA port
  std::string device;          // of an RDMA port that is a rail by itself: nothing but RDMA goes there, whatever interface it has
  uint8_t port = 0;            // its number; with `device` alone
  bool port_active = true;     // it was as the rails were resolved: for lines, as its device tells of it from then on
  IpAddress address;           // may be empty while the interface is down
  bool fixed_address = false;  // R2CC_RAILS named the address, not the interface: no other one will do
  // Its sockets are not tied to the interface, which no packet passes: the address is reached by any route to this node, and leaves by any.
  bool any_route = false;
  bool unused = false;  // by rule, as its packets go astray (SettleArpFlux): it never comes up
  std::array<uint8_t, 6> mac{};
  std::string pci_path;  // sysfs path of the PCI function; empty: none
  std::string pci;       // its address, "0000:81:00.0"; empty: none
  uint64_t guid = 0;     // distinct among the rails, the same in each run: the port's, or the MAC, else from name and address
  int speed_mbps = kUnknownSpeedMbps;
  bool present = true;       // the interface exists
  bool up = false;           // it can carry traffic: up, with carrier and address. What an RDMA port can, its device says: it is up here
  uint64_t netns_inode = 0;  // of the network namespace; 0: unknown
};

// The rails that `spec` (the syntax of R2CC_RAILS) means on `host`, whose RDMA ports are `ports`, none where TCP alone is wanted:
// - names of interfaces, the other ones too that they may have ("altname"), numeric IP addresses and RDMA ports ("mlx5_0:1"; a device is
// all
//   its ports), comma separated: exactly those, in that order. One that the machine does not have is an error; an interface that is down,
//   without carrier or without address is a rail that is down. Addresses in 127.0.0.0/8 and ::1 need no interface of their own, and another
//   address of the loopback device, as of a node that routes to itself, is reached by any. A port and its interface are one rail.
// - ~ and such a list: those of them that the machine has, at least one. Each that it lacks is a warning: the NIC fell off the bus, and the
//   job starts with the rails that exist.
// - a pattern among them (base/core/glob.h: "mlx5_*", "eth?") stands for the interfaces that it fits, but for the loopback, and then for
//   the devices, by name; if it fits none, for those that have such another name. It passes over what is a rail already. One that fits
//   nothing is an error.
// - empty: what base/core/nic_choice.h chooses among interfaces, and active ports of none that it would choose without them, in the order
//   of PCI addresses, then names.
// - ^ and a list: as if empty, without those interfaces, devices and ports. One that the machine does not have is a warning.
// False and one line in `error` if there is no such set of rails; `rails` is untouched then. `warnings`: a line on each port that is down,
// as nobody else tells of it, on each exclusion that excludes nothing, on each address that another node has, too, and on rails that are
// not used (SettleArpFlux), and on a rail that nobody named and that may be there for management (ManagementWarning); null: nobody wants
// them.
bool ResolveRails(const std::string& spec, HostNetwork& host, std::span<const verbs::PortFacts> ports, std::vector<Rail>* rails,
                  std::string* error, std::vector<std::string>* warnings = nullptr);

// Where the out-of-band connections of this process are to be made. `oob_ifname` is R2CC_OOB_IFNAME: an interface or an address, which
// must exist. If it is empty: 127.0.0.1 if all rails are loopback addresses; else the first interface that is up, has an address that is
// not link-local, is no rail, and is no loopback, bridge or container network (NICs before virtual interfaces); else the first rail that
// is up; else the first that has an address. False and one line in `error` if there is none.
bool ChooseOobAddress(const std::string& oob_ifname, const std::vector<Rail>& rails, HostNetwork& host, IpAddress* address,
                      std::string* error);

// The address of `interface` that a rail uses: the first of the best AddressRank(); empty if it has none that can be used.
IpAddress PreferredAddress(const HostInterface& interface);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_RAILS_RAILS_H_
