#include "health/view/node_state.h"

#include <set>
#include <utility>

namespace r2cc::health {

const NicStatus* NodeState::Find(const std::string& nic) const {
  for (const NicStatus& status : nics)
    if (status.identity.name == nic) return &status;
  return nullptr;
}

bool NodeState::PlansAs(const NodeState& other) const {
  const auto broken = [](const NodeState& state) {
    std::set<std::pair<std::string, NicKey>> paths;
    for (const PairReport& pair : state.pairs)
      if (pair.broken) paths.emplace(pair.nic, pair.peer);
    return paths;
  };
  return nics == other.nics && word == other.word && broken(*this) == broken(other);
}

}  // namespace r2cc::health
