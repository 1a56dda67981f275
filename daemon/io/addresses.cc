#include "daemon/io/addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

namespace r2cc::daemon {

Addresses::Map OsAddresses::ByInterface() {
  Map map;
  if (struct if_nameindex* const all = if_nameindex(); all != nullptr) {
    for (const struct if_nameindex* one = all; one->if_index != 0; ++one) map[one->if_name];
    if_freenameindex(all);
  }
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return map;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    char text[INET6_ADDRSTRLEN];
    const int family = one->ifa_addr->sa_family;
    const void* bytes = family == AF_INET    ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr)
                        : family == AF_INET6 ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr)
                                             : nullptr;
    if (bytes != nullptr && inet_ntop(family, bytes, text, sizeof(text)) != nullptr) map[one->ifa_name].push_back(text);
  }
  freeifaddrs(list);
  return map;
}

}  // namespace r2cc::daemon
