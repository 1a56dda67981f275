#include "daemon/io/addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>

namespace r2cc::daemon {
namespace {

bool IsLinkLocal(const std::string& address) { return address.starts_with("fe80:") || address.starts_with("169.254."); }
bool IsV6(const std::string& address) { return address.find(':') != std::string::npos; }

}  // namespace

std::string ChooseAddress(const std::vector<std::string>& on_interface, const std::string& current) {
  const bool any_will_do = current.empty() || IsLinkLocal(current);
  if (!any_will_do && std::find(on_interface.begin(), on_interface.end(), current) != on_interface.end()) return current;
  for (const std::string& address : on_interface)
    if (!IsLinkLocal(address) && (any_will_do || IsV6(address) == IsV6(current))) return address;
  return current.empty() && !on_interface.empty() ? on_interface.front() : current;
}

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
