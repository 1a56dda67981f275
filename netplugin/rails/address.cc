#include "netplugin/rails/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstring>

namespace r2cc::net {

std::optional<IpAddress> ParseIpAddress(const std::string& text, int scope) {
  sockaddr_in v4{};
  if (inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    return FromSockaddr(reinterpret_cast<const sockaddr*>(&v4));
  }
  sockaddr_in6 v6{};
  if (inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    if (IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr)) v6.sin6_scope_id = static_cast<uint32_t>(scope);
    return FromSockaddr(reinterpret_cast<const sockaddr*>(&v6));
  }
  return std::nullopt;
}

std::optional<IpAddress> FromSockaddr(const sockaddr* address) {
  if (address == nullptr) return std::nullopt;
  IpAddress result;
  char text[INET6_ADDRSTRLEN] = "";
  if (address->sa_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, address, sizeof(v4));
    v4.sin_port = 0;
    result.length = sizeof(v4);
    std::memcpy(&result.storage, &v4, sizeof(v4));
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
  } else if (address->sa_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, address, sizeof(v6));
    v6.sin6_port = 0;
    result.length = sizeof(v6);
    std::memcpy(&result.storage, &v6, sizeof(v6));
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
  } else {
    return std::nullopt;
  }
  result.text = text;
  return result;
}

}  // namespace r2cc::net
