// Turns another node's state into evidence about this node's NICs. A pure function.
#ifndef R2CC_HEALTH_VIEW_PEER_EVIDENCE_H_
#define R2CC_HEALTH_VIEW_PEER_EVIDENCE_H_

#include <vector>

#include "health/evidence/evidence.h"
#include "health/view/node_state.h"

namespace r2cc::health {

// The NICs that have failed, or are back, between `before` and `after`: two states of one other node. `before` is null if nothing was
// known of it.
std::vector<Evidence> PeerEvidence(const NodeState* before, const NodeState& after, Nanos now);

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_VIEW_PEER_EVIDENCE_H_
