// Chooses the entry of a port's GID table that a queue pair uses. Pure. The table is read again for each queue pair, because an index is
// not stable.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_GID_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_GID_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "netplugin/rails/address.h"
#include "netplugin/transport/verbs/verbs_types.h"

namespace r2cc::net::verbs {

// The known facts of the rail.
struct GidWish {
  LinkLayer link_layer = LinkLayer::kEthernet;
  uint32_t interface_index = 0;        // 0: unknown
  IpAddress address;                   // may be empty
  std::optional<uint32_t> index = {};  // set by the site
};

// The address as a GID; nothing if it is empty.
std::optional<Gid> GidOf(const IpAddress& address);
bool IsLinkLocal(const Gid& gid);
bool IsMappedV4(const Gid& gid);

// On Ethernet an entry of RoCE v2, on InfiniBand one of InfiniBand. Preferred in this order: the rail's own address, an entry of its
// interface, one of its address's family, IPv4. Link-local entries come last, and the lowest index decides. An index that the site has set
// excludes all others. Nothing: the port has no suitable address.
std::optional<GidEntry> ChooseGid(std::span<const GidEntry> entries, const GidWish& wish);

// In text form: 10.0.0.1, or eight groups.
std::string TextOf(const Gid& gid);

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_GID_H_
