// The state of a NIC and the status of a node.
#ifndef R2CC_HEALTH_VIEW_NIC_STATE_H_
#define R2CC_HEALTH_VIEW_NIC_STATE_H_

#include <cstdint>

namespace r2cc::health {

enum class NicState : uint8_t {
  kHealthy,
  kDegraded,  // carries traffic, below its due
  kSuspect,   // somebody complains; carries traffic until the daemon's own probe confirms a fault
  kFailed,    // dead: reported by its kernel, or a drill
  kProving,   // back, or no report yet; not trusted
  kDrained,   // by the operator
  kUncabled,  // its link was never up, as far as is known: nobody has put a cable in yet, which is no fault
};
constexpr int kNicStates = 7;

// Upper case, as users see it ("HEALTHY").
const char* NicStateName(NicState state);

// True if a NIC in this state may carry new traffic.
constexpr bool CarriesTraffic(NicState state) {
  return state == NicState::kHealthy || state == NicState::kDegraded || state == NicState::kSuspect;
}

enum class NodeStatus : uint8_t {
  kHealthy,       // every NIC is
  kDegraded,      // some NIC is not, and some NIC carries traffic
  kUnhealthy,     // no NIC carries traffic
  kInitializing,  // there is no report of some NIC's link yet
  kUnreachable,   // nothing has come from its daemon; no statement about its NICs
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_VIEW_NIC_STATE_H_
