// The part of the prober that looks for NICs on another rail's network.
#include <utility>

#include "base/core/hash.h"
#include "health/probe/rail_prober.h"

namespace r2cc::health {

std::optional<RailPing> RailProber::Stray(RailTarget target, Nanos now) {
  const ProbeMacKey* const key = keys_->MacKey(keys_->sending_nonce(), target.key.peer.node, target.nonce);
  if (key == nullptr) return std::nullopt;
  if (strays_.size() >= kStraysMax && !strays_.contains(target.key)) strays_.clear();
  StrayPair& stray = strays_[target.key];
  if (stray.id == 0) stray.id = next_id_++;
  stray.sequence = next_sequence_++;
  stray.target = std::move(target);
  ++counts_.sent;
  const uint64_t nic_hash = Fnv1a64(stray.target.key.peer.ToString());
  const RailProbe probe = {RailProbeKind::kPing, stray.target.nonce, keys_->sending_nonce(), stray.id, stray.sequence, now, nic_hash, 0};
  return RailPing{stray.target.key.own.nic, stray.target.key.peer, 0,
                  stray.target.address,     stray.target.port,     EncodeRailProbe(probe, *key)};
}

bool RailProber::OnStrayPong(const std::string& nic, const std::string& from, const RailProbe& pong, Nanos received) {
  for (auto& [key, stray] : strays_) {
    if (stray.id != pong.pair) continue;
    const bool fits = pong.kind == RailProbeKind::kPong && pong.sequence == stray.sequence && pong.from_nonce == stray.target.nonce &&
                      from == stray.target.address && key.own.nic == nic && pong.nic_hash == Fnv1a64(key.peer.ToString());
    if (fits) stray.answered = received;
    return fits;
  }
  return false;
}

std::vector<PairKey> RailProber::StraysAnswered(Nanos since) const {
  std::vector<PairKey> answered;
  for (const auto& [key, stray] : strays_)
    if (stray.answered != 0 && stray.answered >= since) answered.push_back(key);
  return answered;
}

}  // namespace r2cc::health
