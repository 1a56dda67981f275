#include "netplugin/rails/management.h"

#include <algorithm>

namespace r2cc::net {
namespace {

// Addresses for documentation (RFC 5737, RFC 3849): no network has them, so the default route leads there.
constexpr char kElsewhereV4[] = "192.0.2.1";
constexpr char kElsewhereV6[] = "2001:db8::1";

}  // namespace

std::string ManagementWarning(const std::string& spec, HostNetwork& host, const std::vector<Rail>& rails) {
  if (rails.size() < 2) return "";
  const Rail* found = nullptr;
  for (const Rail& rail : rails) {
    if (rail.address.empty() || rail.ifindex == 0) continue;
    const int leaves_by = host.RouteInterface(rail.address, rail.address.storage.ss_family == AF_INET6 ? kElsewhereV6 : kElsewhereV4);
    const auto by = std::find_if(rails.begin(), rails.end(), [&](const Rail& one) { return one.ifindex == leaves_by; });
    if (leaves_by == 0 || by == rails.end()) continue;
    // With a routing table for each of them all are alike.
    if (found != nullptr && found->ifindex != by->ifindex) return "";
    found = &*by;
  }
  if (found == nullptr) return "";
  return "R2CC: rail " + found->name +
         " has this node's default route, so it may be the management network, and carries a part of all data: " +
         "name the rails in R2CC_RAILS or in r2ccd's nics, or leave it out (R2CC_RAILS=" + (spec.empty() ? "^" : spec + ",") + found->name +
         ")";
}

}  // namespace r2cc::net
