// Finds the rails of this process, from R2CC_RAILS and the machine.
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

// The limit of an attach request.
constexpr size_t kRailsMax = 32;
// NCCL also assumes this for a NIC that reports no speed.
constexpr int kUnknownSpeedMbps = 10'000;

struct Rail {
  std::string name;            // as in R2CC_RAILS, or the interface's, or the RDMA port's ("mlx5_0", of several ports "mlx5_0:1")
  int index = 0;               // position among the rails, and NCCL's device number
  std::string interface;       // empty for an address-only rail (a loopback address), and for an RDMA port
  int ifindex = 0;             // 0 for an address-only rail, and for an RDMA port
  std::string device;          // of an RDMA port that is a rail alone: only RDMA goes there, whatever interface it has
  uint8_t port = 0;            // its number; with `device` alone
  bool port_active = true;     // its state as the rails were resolved, for log lines; its device reports later changes
  IpAddress address;           // may be empty while the interface is down
  bool fixed_address = false;  // R2CC_RAILS named the address, not the interface: no other one is used
  // Its sockets are not bound to the interface, because no packet passes through it: any route to this node reaches the address, and
  // packets leave by any.
  bool any_route = false;
  bool unused = false;  // by rule, because its packets go astray (SettleArpFlux): it never comes up
  std::array<uint8_t, 6> mac{};
  std::string pci_path;  // sysfs path of the PCI function; empty: none
  std::string pci;       // its address, "0000:81:00.0"; empty: none
  uint64_t guid = 0;     // distinct among the rails, the same in each run: the port's, or the MAC, else from name and address
  int speed_mbps = kUnknownSpeedMbps;
  bool present = true;       // the interface exists
  bool up = false;           // up, with carrier and address. Always set for an RDMA port, whose device reports its state
  uint64_t netns_inode = 0;  // of the network namespace; 0: unknown
};

// Finds the rails that `spec` (the syntax of R2CC_RAILS) names on `host`. `ports`: its RDMA ports, empty if only TCP is wanted.
// - names of interfaces or their other names ("altname"), numeric IP addresses and RDMA ports ("mlx5_0:1"; a device is all its ports),
//   comma separated: exactly those, in that order. A name that the machine does not have is an error; an interface that is down, without
//   carrier or without address is a rail that is down. Addresses in 127.0.0.0/8 and ::1 need no interface of their own. Any interface
//   reaches another address of the loopback device, as on a node that routes to itself. A port and its interface are one rail.
// - ~ and such a list: those of them that the machine has, at least one. Each that it lacks is a warning: the NIC fell off the bus, and the
//   job starts with the rails that exist.
// - a pattern in the list (base/core/glob.h: "mlx5_*", "eth?") stands for the interfaces that it matches, except the loopback, then for the
//   devices, by name; if it matches none, for those with such another name. It skips what is a rail already. A pattern that matches nothing
//   is an error.
// - empty: the choice of base/core/nic_choice.h among interfaces, and active ports of interfaces that it would not choose, in the order of
//   PCI addresses, then names.
// - ^ and a list: as if empty, without those interfaces, devices and ports. A name that the machine does not have is a warning.
//
// False and one line in `error` if there is no such set of rails; `rails` is unchanged then. `warnings`: a line on each port that is down,
// because nothing else reports it; on each exclusion that excludes nothing; on each address that another node also has; on rails that are
// not used (SettleArpFlux); and on an unnamed rail that may be meant for management (ManagementWarning). Null: no warnings are wanted.
bool ResolveRails(const std::string& spec, HostNetwork& host, std::span<const verbs::PortFacts> ports, std::vector<Rail>* rails,
                  std::string* error, std::vector<std::string>* warnings = nullptr);

// Finds the address for the out-of-band connections of this process. `oob_ifname` is R2CC_OOB_IFNAME: an interface or an address, which
// must exist. If it is empty: 127.0.0.1 if all rails are loopback addresses; otherwise the first interface that is up, has an address that
// is not link-local, is no rail, and is no loopback, bridge or container network (NICs before virtual interfaces); otherwise the first rail
// that is up; otherwise the first that has an address. False and one line in `error` if there is none.
bool ChooseOobAddress(const std::string& oob_ifname, const std::vector<Rail>& rails, HostNetwork& host, IpAddress* address,
                      std::string* error);

// The address of `interface` that a rail uses: the first of the best AddressRank(); empty if none can be used.
IpAddress PreferredAddress(const HostInterface& interface);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_RAILS_RAILS_H_
