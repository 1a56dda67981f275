// Lists the network interfaces of this namespace and their addresses, by the kernel's NETLINK_ROUTE: getifaddrs() has neither the other
// names of an interface nor the flag of a duplicate address.
#ifndef R2CC_BASE_CORE_INTERFACES_H_
#define R2CC_BASE_CORE_INTERFACES_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/core/address_choice.h"
#include "base/core/netlink.h"

namespace r2cc {

struct InterfaceAddress {
  std::string text;     // numeric, without scope
  int prefix_bits = 0;  // of its network
  AddressState state;
};

struct Interface {
  std::string name;
  std::vector<std::string> other_names;  // `ip link property add ... altname`
  int ifindex = 0;
  bool loopback = false;
  bool dummy = false;  // of the kind "dummy": its addresses are this node's, and no packet passes it
  bool admin_up = false;
  bool carrier_up = false;
  std::array<uint8_t, 6> mac{};             // zero if it has none of six bytes
  std::vector<InterfaceAddress> addresses;  // in the kernel's order
};

// By ifindex; from a whole dump of events. Pure.
std::vector<Interface> InterfacesOf(std::span<const NetEvent> events);

// In the network namespace of the calling thread; empty if the kernel does not answer.
std::vector<Interface> ReadInterfaces();

}  // namespace r2cc

#endif  // R2CC_BASE_CORE_INTERFACES_H_
