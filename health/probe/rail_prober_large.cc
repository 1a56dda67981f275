// The part of the prober that asks whether large packets pass.
#include <algorithm>
#include <utility>

#include "health/probe/rail_prober.h"

namespace r2cc::health {
namespace {

// A ping that fits into the least packet of IPv4 proves no more than small pings do.
constexpr size_t kLeastPacketBytes = 576;

}  // namespace

void RailProber::SetMtu(const std::string& nic, uint32_t mtu) {
  uint32_t& known = mtus_[nic];
  if (std::exchange(known, mtu) == mtu) return;
  for (auto& [key, pair] : pairs_)
    if (key.own.nic == nic) SizeLarge(&pair, last_tick_);
}

void RailProber::SizeLarge(Pair* pair, Nanos now) {
  if (pair->path_mtu != 0 && now >= pair->path_mtu_until) pair->path_mtu = 0;
  const auto mtu = mtus_.find(pair->target.key.own.nic);
  size_t full = std::min<size_t>(mtu == mtus_.end() ? 0 : mtu->second, pair->target.packet_max);
  if (pair->path_mtu != 0) full = std::min<size_t>(full, pair->path_mtu);
  full = std::min(full, kRailProbeBytesMax + RailProbeHeaderBytes(pair->target.address));
  // A ping that fits into the least packet of IP proves no more than small pings do.
  pair->large.SetFull(full <= kLeastPacketBytes ? 0 : full);
  NoteVerdict(pair);
}

// By what both kernels know, not by what is lost: a smaller size is asked from now on.
void RailProber::SetPathMtu(Pair* pair, size_t too_large, Nanos now) {
  const size_t next = NextSizeBelow(too_large);
  pair->path_mtu = static_cast<uint32_t>(std::max<size_t>(next, 1));
  pair->path_mtu_until = now + policy_.path_mtu_believed;
  SizeLarge(pair, now);
}

void RailProber::SuspectLarge(const std::string& nic, const NicKey& peer, Nanos now) {
  Ask({{node_, nic}, peer}, now);
  std::vector<Pair*> own;
  for (auto& [key, pair] : pairs_)
    if (key.own.nic == nic && pair.judge.state() == PairState::kUp) own.push_back(&pair);
  SuspectSome(own, now);
  for (Pair* pair : own)
    if (pair->suspect_until > now) pair->large_suspect_until = now + policy_.suspicion;
  FindNext();
}

PairVerdict RailProber::LargeVerdict(const Pair& pair, Nanos since) {
  const PairVerdict verdict = pair.large.verdict();
  return verdict == PairVerdict::kAnswering && pair.large.answered_sent() < since ? PairVerdict::kUnknown : verdict;
}

void RailProber::JudgeLarge(Pair* pair, Nanos now) {
  if (pair->large.full() == 0) return;
  if (pair->judge.state() != PairState::kUp && pair->judge.state() != PairState::kLate) {
    pair->large.Reset();
    return;
  }
  const bool was_lost = pair->large.lost();
  pair->large.Judge(now, pair->judge.patience(), pair->judge.answered_sent());
  if (pair->large.lost() != was_lost) NoteVerdict(pair);
  const bool unsettled = pair->large.unsettled() || (pair->large.lost() && !was_lost);
  if (unsettled && pair->large_suspect_until - now < policy_.suspicion / 2) MarkLargeSuspect(*pair, now);
}

// As with a silent pair, others of both its ends show where the fault is.
void RailProber::MarkLargeSuspect(const Pair& suspect, Nanos now) {
  SuspectAround(suspect, now);
  for (auto& [key, pair] : pairs_)
    if (pair.suspect_until == now + policy_.suspicion) pair.large_suspect_until = pair.suspect_until;
}

Nanos RailProber::LargeInterval(const RailTarget& target) const {
  return target.active ? large_active_interval_ : large_auxiliary_interval_;
}

// Not while a small one is unanswered: a peer that is stopped would find its buffer full of large ones when it goes on, with room for
// small ones alone.
bool RailProber::LargeIsDue(const Pair& pair, Nanos now) const {
  if (pair.large.full() == 0 || pair.judge.state() != PairState::kUp || pair.Awaited()) return false;
  return now >= pair.large_due || now < pair.large_suspect_until;
}

std::optional<RailPing> RailProber::LargePing(Pair* pair, Nanos now) {
  SizeLarge(pair, now);
  if (pair->large.full() == 0) return std::nullopt;
  const Nanos interval = LargeInterval(pair->target);
  pair->large_due = now + interval - interval / 8;
  const size_t packet = pair->large.NextSize();
  const uint64_t sequence = next_sequence_++;
  std::optional<RailPing> ping = Send(pair, RailProbeKind::kLargePing, packet - RailProbeHeaderBytes(pair->target.address), sequence, now);
  if (ping.has_value()) pair->large.Sent(sequence, packet, now);
  return ping;
}

void RailProber::TooLarge(const RailPing& ping, Nanos now) {
  const auto pair = pairs_.find({{node_, ping.nic}, ping.peer});
  if (pair == pairs_.end() || ping.length == kRailProbeBytes) return;
  SetPathMtu(&pair->second, ping.length + RailProbeHeaderBytes(ping.address), now);
}

void RailProber::NotSent(const RailPing& ping) {
  const auto pair = pairs_.find({{node_, ping.nic}, ping.peer});
  if (pair != pairs_.end() && ping.length != kRailProbeBytes) pair->second.large.Forget();
}

RailAnswer RailProber::AnswerLarge(const std::string& nic, const std::string& from, const std::string& sender, RailProbe pong,
                                   const ProbeMacKey& key, Nanos received) {
  if (const auto pairs = by_node_.find(sender); pairs != by_node_.end())
    for (Pair* pair : pairs->second)
      if (pair->target.key.own.nic == nic && pair->target.address == from)
        pair->large.PingCame(pong.bytes + RailProbeHeaderBytes(from), received);
  RailAnswer answer;
  pong.kind = RailProbeKind::kLargePong;
  answer.bytes = EncodeRailProbe(pong, key);
  answer.length = pong.bytes;
  pong.kind = RailProbeKind::kLargeReceived;
  answer.after = EncodeRailProbe(pong, key);
  pong.bytes = 0;
  answer.instead = EncodeRailProbe(pong, key);
  return answer;
}

}  // namespace r2cc::health
