// Which entry of a port's GID table a queue pair uses. Pure. The table is read anew for each queue pair: an index is not stable.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_GID_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_GID_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/core/verbs/verbs.h"
#include "netplugin/rails/address.h"

namespace r2cc::net::verbs {

// What the rail is, as far as it is known.
struct GidWish {
  LinkLayer link_layer = LinkLayer::kEthernet;
  uint32_t interface_index = 0;        // 0: unknown
  IpAddress address;                   // may be empty
  std::optional<uint32_t> index = {};  // the site has said which
};

// As a GID; nothing if it is empty.
std::optional<Gid> GidOf(const IpAddress& address);
bool IsLinkLocal(const Gid& gid);
bool IsMappedV4(const Gid& gid);

// On Ethernet an entry of RoCE v2, on InfiniBand one of InfiniBand. The rail's own address goes before all others; then those of its
// interface, of its address's family, and IPv4; link-local ones come last, and the lowest index decides. An index that the site has set is
// the only one. Nothing: the port has no address for this.
std::optional<GidEntry> ChooseGid(std::span<const GidEntry> entries, const GidWish& wish);

// As people write it: 10.0.0.1, or eight groups.
std::string TextOf(const Gid& gid);

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_GID_H_
