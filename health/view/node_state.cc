#include "health/view/node_state.h"

namespace r2cc::health {

const NicStatus* NodeState::Find(const std::string& nic) const {
  for (const NicStatus& status : nics)
    if (status.identity.name == nic) return &status;
  return nullptr;
}

}  // namespace r2cc::health
