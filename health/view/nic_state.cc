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

const char* NodeStatusName(NodeStatus status) {
  switch (status) {
    case NodeStatus::kHealthy: return "Healthy";
    case NodeStatus::kDegraded: return "Degraded";
    case NodeStatus::kUnhealthy: return "Unhealthy";
    case NodeStatus::kInitializing: return "Initializing";
    case NodeStatus::kUnreachable: return "Unreachable";
  }
  return "unknown";
}

}  // namespace r2cc::health
