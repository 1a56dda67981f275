#include "health/view/nic_state.h"

namespace r2cc::health {

const char* NicStateName(NicState state) {
  switch (state) {
    case NicState::kHealthy: return "HEALTHY";
    case NicState::kDegraded: return "DEGRADED";
    case NicState::kSuspect: return "SUSPECT";
    case NicState::kFailed: return "FAILED";
    case NicState::kProving: return "PROVING";
    case NicState::kDrained: return "DRAINED";
    case NicState::kUncabled: return "UNCABLED";
  }
  return "unknown";
}

}  // namespace r2cc::health
