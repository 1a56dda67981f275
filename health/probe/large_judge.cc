#include "health/probe/large_judge.h"

#include <algorithm>
#include <array>
#include <utility>

namespace r2cc::health {
namespace {

// Sizes at which networks end: jumbo frames less what tunnels take, InfiniBand's 4 KiB and 2 KiB, Ethernet and what tunnels leave of it,
// and what IPv6 and IPv4 promise.
constexpr std::array<size_t, 9> kSizes = {8000, 4092, 2044, 1500, 1450, 1400, 1280, 1006, 576};
constexpr size_t kPingsMax = 128;
// Full ones are taken to get lost once in so many until they show how often.
constexpr double kLossPrior = 1.0 / 32;
constexpr double kLossGain = 1.0 / 32;

}  // namespace

size_t NextSizeBelow(size_t bytes) {
  const auto* const size = std::find_if(kSizes.begin(), kSizes.end(), [&](size_t one) { return one < bytes; });
  return size == kSizes.end() ? 0 : *size;
}

void LargeJudge::SetFull(size_t packet_bytes) {
  if (std::exchange(full_, packet_bytes) != packet_bytes) Reset();
}

size_t LargeJudge::NextSize() {
  small_turn_ = !small_turn_ && missed_since_ != 0;
  if (!small_turn_) return full_;
  // Ethernet's own first: that is what a port has when it was reset.
  if (failed_ == 0 && passed_ == 0 && full_ > 1500) return 1500;
  const size_t next = NextSizeBelow(failed_ != 0 ? failed_ : full_);
  return next > passed_ ? next : full_;
}

void LargeJudge::Sent(uint64_t sequence, size_t packet_bytes, Nanos now) {
  while (!pings_.empty() && (pings_.size() >= kPingsMax || now - pings_.front().sent >= policy_.lost_after)) pings_.pop_front();
  pings_.push_back({.sequence = sequence, .packet_bytes = packet_bytes, .sent = now});
}

LargeJudge::Ping* LargeJudge::Find(uint64_t sequence) {
  const auto ping = std::find_if(pings_.begin(), pings_.end(), [&](const Ping& one) { return one.sequence == sequence; });
  return ping == pings_.end() ? nullptr : &*ping;
}

bool LargeJudge::Answered(uint64_t sequence, Nanos received) {
  Ping* const ping = Find(sequence);
  if (ping == nullptr || std::exchange(ping->answered, true)) return false;
  if (ping->packet_bytes < full_) {
    passed_ = std::max(passed_, ping->packet_bytes);
    if (failed_ <= passed_) failed_ = 0;
    return true;
  }
  OnFullAnswer(ping->sent, received);
  return true;
}

void LargeJudge::OnFullAnswer(Nanos sent, Nanos received) {
  answered_sent_ = std::max(answered_sent_, sent);
  misses_ = 0;
  if (!lost()) {
    for (Ping& ping : pings_) {
      if (ping.answered || ping.packet_bytes < full_ || ping.sent >= sent || std::exchange(ping.counted, true)) continue;
      loss_rate_ += (1 - loss_rate_) * kLossGain;
    }
    loss_rate_ -= loss_rate_ * kLossGain;
    verdict_ = PairVerdict::kAnswering;
    return ForgetLoss();
  }
  if (proof_answers_++ == 0) proof_since_ = received;
  if (proof_answers_ < policy_.proof_answers || received - proof_since_ < flaps_.ProofTime(policy_.proof_min, policy_.proof_max)) return;
  verdict_ = PairVerdict::kAnswering;
  proof_answers_ = 0;
  for (Ping& ping : pings_) ping.counted = true;
  ForgetLoss();
}

void LargeJudge::ForgetLoss() {
  missed_since_ = 0;
  passed_ = failed_ = 0;
}

bool LargeJudge::Arrived(uint64_t sequence) {
  const Ping* const ping = Find(sequence);
  if (ping == nullptr) return false;
  if (ping->packet_bytes == full_) arrived_ = std::max(arrived_, ping->sent);
  return true;
}

void LargeJudge::Judge(Nanos now, Nanos patience, Nanos small_answered_sent) {
  int misses = 0;
  Nanos first = 0;
  Nanos last = 0;
  for (Ping& ping : pings_) {
    if (ping.answered || ping.sent > now - patience || ping.sent > small_answered_sent) continue;
    const bool news = !std::exchange(ping.missed, true);
    if (ping.packet_bytes < full_) {
      if (news && ping.packet_bytes > passed_) failed_ = failed_ == 0 ? ping.packet_bytes : std::min(failed_, ping.packet_bytes);
      continue;
    }
    if (ping.sent <= answered_sent_) continue;
    if (misses++ == 0) first = ping.sent;
    last = ping.sent;
  }
  misses_ = lost() ? 0 : misses;
  if (misses == 0) return;
  if (missed_since_ == 0) missed_since_ = first;
  // The size under proof is lost again.
  proof_answers_ = 0;
  if (lost() || misses < MissesNeeded() || last - first < policy_.misses_span_min) return;
  flaps_.Count(now);
  verdict_ = PairVerdict::kSilent;
  misses_ = 0;
}

int LargeJudge::MissesNeeded() const {
  const double lost = std::max(loss_rate_, kLossPrior);
  int needed = 1;
  for (double chance = lost; chance > policy_.chance_max && needed < policy_.misses_max; chance *= lost) ++needed;
  return std::max(needed, policy_.misses_min);
}

void LargeJudge::Reset() {
  Forget();
  verdict_ = PairVerdict::kUnknown;
  answered_sent_ = 0;
  misses_ = proof_answers_ = 0;
  loss_rate_ = 0;
  arrived_ = ping_came_ = 0;
  ForgetLoss();
}

LargeLoss LargeJudge::loss() const {
  if (!lost()) return {};
  LargeLoss::Way way = LargeLoss::Way::kEither;
  if (arrived_ >= missed_since_)
    way = LargeLoss::Way::kBack;
  else if (ping_came_ >= missed_since_)
    way = LargeLoss::Way::kThere;
  return {static_cast<uint32_t>(full_), static_cast<uint32_t>(passed_), way};
}

}  // namespace r2cc::health
