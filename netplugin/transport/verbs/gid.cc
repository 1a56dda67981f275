#include "netplugin/transport/verbs/gid.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <tuple>

namespace r2cc::net::verbs {
namespace {

constexpr size_t kPrefixBytes = 12;
constexpr uint8_t kMappedPrefix[kPrefixBytes] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

}  // namespace

bool IsMappedV4(const Gid& gid) { return std::memcmp(gid.data(), kMappedPrefix, kPrefixBytes) == 0; }
bool IsLinkLocal(const Gid& gid) { return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80; }

std::optional<Gid> GidOf(const IpAddress& address) {
  Gid gid{};
  if (address.empty()) return std::nullopt;
  if (address.storage.ss_family == AF_INET) {
    sockaddr_in in;
    std::memcpy(&in, &address.storage, sizeof(in));
    std::memcpy(gid.data(), kMappedPrefix, kPrefixBytes);
    std::memcpy(gid.data() + kPrefixBytes, &in.sin_addr, sizeof(in.sin_addr));
    return gid;
  }
  sockaddr_in6 in6;
  std::memcpy(&in6, &address.storage, sizeof(in6));
  std::memcpy(gid.data(), &in6.sin6_addr, sizeof(in6.sin6_addr));
  return gid;
}

std::optional<GidEntry> ChooseGid(std::span<const GidEntry> entries, const GidWish& wish) {
  const GidType type = wish.link_layer == LinkLayer::kInfiniBand ? GidType::kInfiniBand : GidType::kRoceV2;
  const std::optional<Gid> own = GidOf(wish.address);
  const bool wants_v6 = own && !IsMappedV4(*own);
  // The smaller the better.
  const auto rank = [&](const GidEntry& entry) {
    const bool other_interface = wish.interface_index != 0 && entry.interface_index != wish.interface_index;
    return std::tuple(!(own && entry.gid == *own), other_interface, IsLinkLocal(entry.gid), IsMappedV4(entry.gid) == wants_v6,
                      !IsMappedV4(entry.gid), entry.index);
  };
  std::optional<GidEntry> best;
  for (const GidEntry& entry : entries) {
    if (wish.index && *wish.index != entry.index) continue;
    const bool empty = std::all_of(entry.gid.begin(), entry.gid.end(), [](uint8_t byte) { return byte == 0; });
    if ((entry.type == type || wish.index) && !empty && (!best || rank(entry) < rank(*best))) best = entry;
  }
  return best;
}

std::string TextOf(const Gid& gid) {
  char text[INET6_ADDRSTRLEN] = "";
  if (IsMappedV4(gid))
    inet_ntop(AF_INET, gid.data() + kPrefixBytes, text, sizeof(text));
  else
    inet_ntop(AF_INET6, gid.data(), text, sizeof(text));
  return text;
}

}  // namespace r2cc::net::verbs
