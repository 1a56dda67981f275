// IP addresses without ports, as sockets want them.
#ifndef R2CC_NETPLUGIN_RAILS_ADDRESS_H_
#define R2CC_NETPLUGIN_RAILS_ADDRESS_H_

#include <sys/socket.h>

#include <cstring>
#include <optional>
#include <string>

namespace r2cc::net {

struct IpAddress {
  sockaddr_storage storage{};  // port 0; an IPv6 link-local one has its scope
  socklen_t length = 0;        // 0: no address
  std::string text;            // numeric, without scope: "10.0.0.1", "fe80::1"

  bool empty() const { return length == 0; }
  bool IsLoopback() const;
  bool IsLinkLocalV6() const;

  friend bool operator==(const IpAddress& a, const IpAddress& b) {
    return a.length == b.length && std::memcmp(&a.storage, &b.storage, a.length) == 0;
  }
};

// From a numeric text; `scope` (an ifindex) is used for IPv6 link-local addresses. Nothing if it is not an address.
std::optional<IpAddress> ParseIpAddress(const std::string& text, int scope = 0);

// From what the kernel gives; nothing for families other than IPv4 and IPv6.
std::optional<IpAddress> FromSockaddr(const sockaddr* address);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_RAILS_ADDRESS_H_
