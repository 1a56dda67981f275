// The part of a node's health that weighs jobs' reports of slow rails.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "health/view/node_health.h"

namespace r2cc::health {

// Never more than DEGRADED: a slow rail still carries, and what one job measures is also what other jobs do.
void NodeHealth::JudgeSlow(Nic* nic, const Evidence& evidence, std::vector<NicChange>* changes) {
  if (dead_peers_.contains(evidence.peer) || nic->machine.state() == NicState::kFailed || nic->machine.uncabled()) return;
  const auto share = static_cast<uint32_t>(std::clamp<int64_t>(evidence.value, 0, kFullWeightPermille));
  const SlowKey key{evidence.uid, evidence.peer};
  const auto known = nic->slow.find(key);
  if (evidence.kind == EvidenceKind::kJobSteady || share >= policy_.steady_permille) {
    if (known != nic->slow.end() && !known->second.sure)
      nic->slow.erase(known);
    else if (known != nic->slow.end())
      known->second.until = std::min(known->second.until, now_ + policy_.slow_settle);
    return;
  }
  if (known == nic->slow.end() && share >= policy_.slow_permille) return;
  Slow& slow = nic->slow[known != nic->slow.end() || nic->slow.size() < kPeersMax ? key : SlowKey{evidence.uid, NicKey{}}];
  const uint32_t moved = share > slow.share_permille ? share - slow.share_permille : slow.share_permille - share;
  if (moved >= policy_.share_step_permille) slow.share_permille = share;
  slow.who = evidence.detail;
  if (slow.since == 0) slow.since = now_;
  slow.only_user = evidence.only_user;
  slow.until = now_ + policy_.slow_clear;
  slow.sure |= slow.share_permille < policy_.slow_sure_permille || now_ - slow.since >= policy_.slow_hold;
  FeedImpairments(nic, changes);
}

uint32_t NodeHealth::SlowShare(const Nic& nic) {
  bool only_user = true;
  std::map<uint32_t, uint32_t> of_users;
  for (const auto& [key, slow] : nic.slow) {
    if (!slow.sure) continue;
    only_user &= slow.only_user;
    uint32_t& share = of_users.try_emplace(key.first, kFullWeightPermille).first->second;
    share = std::min(share, slow.share_permille);
  }
  std::vector<uint32_t> shares;
  for (const auto& [uid, share] : of_users) shares.push_back(share);
  std::sort(shares.begin(), shares.end());
  // The second of them is what two users agree on.
  const size_t needed = only_user ? 1 : 2;
  return shares.size() < needed ? kFullWeightPermille : shares[needed - 1];
}

std::string NodeHealth::SlowReason(const Nic& nic) {
  const Slow* worst = nullptr;
  size_t count = 0;
  for (const auto& [key, slow] : nic.slow) {
    if (!slow.sure) continue;
    ++count;
    if (worst == nullptr || slow.share_permille < worst->share_permille) worst = &slow;
  }
  if (worst == nullptr) return "";
  const std::string others = count > 1 ? ", and " + std::to_string(count - 1) + " more" : "";
  return "moves " + std::to_string(worst->share_permille / 10) + "% of the best rail (" + worst->who + others + ")";
}

}  // namespace r2cc::health
