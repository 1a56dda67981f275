#include "base/core/address_choice.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <optional>

namespace r2cc {
namespace {

enum Rank { kNever = 0, kLoopback, kTentativeLinkLocalV6, kLinkLocalV6, kLinkLocalV4, kTentative, kDeprecated, kV6, kV4 };

// In the machine's byte order.
std::optional<uint32_t> V4(const std::string& address) {
  in_addr parsed{};
  if (inet_pton(AF_INET, address.c_str(), &parsed) != 1) return std::nullopt;
  return ntohl(parsed.s_addr);
}

std::optional<in6_addr> V6(const std::string& address) {
  in6_addr parsed{};
  if (inet_pton(AF_INET6, address.c_str(), &parsed) != 1) return std::nullopt;
  return parsed;
}

}  // namespace

bool IsLinkLocal(const std::string& address) {
  constexpr uint32_t kNetwork = 0xA9FE;  // 169.254
  if (const auto v4 = V4(address)) return *v4 >> 16 == kNetwork;
  const auto v6 = V6(address);
  return v6 && IN6_IS_ADDR_LINKLOCAL(&*v6);
}

bool IsLoopback(const std::string& address) {
  if (const auto v4 = V4(address)) return *v4 >> 24 == IN_LOOPBACKNET;
  const auto v6 = V6(address);
  return v6 && IN6_IS_ADDR_LOOPBACK(&*v6);
}

int AddressRank(const std::string& address, const AddressState& state) {
  if (state.duplicate) return kNever;
  if (IsLoopback(address)) return kLoopback;
  const bool v4 = V4(address).has_value();
  if (IsLinkLocal(address)) return v4 ? kLinkLocalV4 : state.tentative ? kTentativeLinkLocalV6 : kLinkLocalV6;
  if (state.tentative) return kTentative;
  if (state.deprecated) return kDeprecated;
  return v4 ? kV4 : kV6;
}

bool IsRoutable(const std::string& address, const AddressState& state) { return AddressRank(address, state) >= kTentative; }

}  // namespace r2cc
