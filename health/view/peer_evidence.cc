#include "health/view/peer_evidence.h"

namespace r2cc::health {
namespace {

bool IsDead(const NicStatus& nic) { return nic.state == NicState::kFailed || nic.state == NicState::kUncabled; }

}  // namespace

std::vector<Evidence> PeerEvidence(const NodeState* before, const NodeState& after, Nanos now) {
  std::vector<Evidence> found;
  const auto add = [&](const std::string& nic, EvidenceKind kind, const std::string& detail) {
    Evidence evidence;
    evidence.observer = after.node;
    evidence.subject = {after.node, nic};
    evidence.kind = kind;
    evidence.when = now;
    evidence.detail = detail;
    found.push_back(evidence);
  };
  for (const NicStatus& nic : after.nics) {
    const NicStatus* old = before == nullptr ? nullptr : before->Find(nic.identity.name);
    const bool was_dead = old != nullptr && IsDead(*old);
    const bool is_dead = IsDead(nic);
    if (is_dead && !was_dead) add(nic.identity.name, EvidenceKind::kPeerNicFailed, nic.reason);
    if (was_dead && !is_dead) add(nic.identity.name, EvidenceKind::kPeerNicBack, nic.reason);
  }
  if (before == nullptr) return found;
  // A NIC that is no longer spoken of is no longer known to be dead.
  for (const NicStatus& old : before->nics)
    if (IsDead(old) && after.Find(old.identity.name) == nullptr) add(old.identity.name, EvidenceKind::kPeerNicBack, "no longer configured");
  return found;
}

}  // namespace r2cc::health
