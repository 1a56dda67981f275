// Finds the NIC of an InfiniBand port, from what nodes publish about their NICs. Pure.
#ifndef R2CC_DAEMON_NICS_PORT_CLAIMS_H_
#define R2CC_DAEMON_NICS_PORT_CLAIMS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "health/view/cluster_view.h"

namespace r2cc::daemon {

// The NIC whose port has `guid`. This node's ports are certain. If several other nodes claim a port, none is believed.
inline std::optional<health::NicKey> NicOfPort(const health::ClusterView& view, const std::string& own_node, uint64_t guid) {
  std::optional<health::NicKey> claimed;
  bool twice = false;
  for (const auto& [name, node] : view.nodes())
    for (const health::NicStatus& nic : node.state.nics) {
      if (nic.identity.port_guid != guid) continue;
      if (name == own_node) return health::NicKey{name, nic.identity.name};
      twice = twice || (claimed.has_value() && claimed->node != name);
      claimed = health::NicKey{name, nic.identity.name};
    }
  return twice ? std::nullopt : claimed;
}

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_NICS_PORT_CLAIMS_H_
