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
  }
  return "unknown";
}

const char* NodeWordName(NodeWord word) {
  switch (word) {
    case NodeWord::kHealthy: return "Healthy";
    case NodeWord::kDegraded: return "Degraded";
    case NodeWord::kUnhealthy: return "Unhealthy";
    case NodeWord::kInitializing: return "Initializing";
    case NodeWord::kUnreachable: return "Unreachable";
  }
  return "unknown";
}

}  // namespace r2cc::health
