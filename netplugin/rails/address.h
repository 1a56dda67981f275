// Holds an IP address without a port, in the form that sockets need.
#ifndef R2CC_NETPLUGIN_RAILS_ADDRESS_H_
#define R2CC_NETPLUGIN_RAILS_ADDRESS_H_

#include <sys/socket.h>

#include <cstring>
#include <optional>
#include <string>

#include "base/core/address_choice.h"

namespace r2cc::net {

struct IpAddress {
  sockaddr_storage storage{};  // port 0; an IPv6 link-local one has its scope
  socklen_t length = 0;        // 0: no address
  std::string text;            // numeric, without scope: "10.0.0.1", "fe80::1"
  int prefix_bits = 0;         // of its network, if an interface has it; 0: unknown
  AddressState state{};        // if an interface has it

  bool empty() const { return length == 0; }
  bool IsLoopback() const { return r2cc::IsLoopback(text); }
  bool IsLinkLocal() const { return r2cc::IsLinkLocal(text); }
  // See AddressRank(): 0 for an address that is never used, and for an empty one.
  int rank() const { return empty() ? 0 : AddressRank(text, state); }

  // Ignores the state.
  friend bool operator==(const IpAddress& a, const IpAddress& b) {
    return a.length == b.length && std::memcmp(&a.storage, &b.storage, a.length) == 0;
  }
};

// From a numeric text; `scope` (an ifindex) is used for IPv6 link-local addresses. Nothing if it is not an address.
std::optional<IpAddress> ParseIpAddress(const std::string& text, int scope = 0);

// From a kernel structure; nothing for families other than IPv4 and IPv6.
std::optional<IpAddress> FromSockaddr(const sockaddr* address);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_RAILS_ADDRESS_H_
