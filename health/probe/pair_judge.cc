#include "health/probe/pair_judge.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace r2cc::health {
namespace {

constexpr size_t kPingsMax = 128;
constexpr uint32_t kFatesMax = 64;
// Half of what people are shown: a repair is over in what they see 10 s later.
constexpr Nanos kRecentSpan = 5 * kNanosPerSecond;
// proof_max is reached long before.
constexpr uint32_t kFlapLevelMax = 16;
// A pair is taken to lose one in so many probes until it shows what it loses.
constexpr double kFatesPrior = 32;

}  // namespace

PairJudge::PairJudge(const PairPolicy& policy, Nanos now) : policy_(policy), since_(now), flaps_(policy.flap_decay, kFlapLevelMax) {}

void PairJudge::Fates::Add(bool was_lost) {
  lost = lost << 1 | (was_lost ? 1 : 0);
  known = std::min(known + 1, kFatesMax);
}

uint32_t PairJudge::Fates::LostCount() const {
  const uint64_t mask = known >= kFatesMax ? ~uint64_t{0} : (uint64_t{1} << known) - 1;
  return static_cast<uint32_t>(std::popcount(lost & mask));
}

void PairJudge::Sent(uint64_t sequence, Nanos now) {
  DropOld(now);
  pings_.push_back({.sequence = sequence, .sent = now, .explained = VerdictOf(state_) == PairVerdict::kSilent});
  ++measures_.sent;
}

void PairJudge::DropOld(Nanos now) {
  while (!pings_.empty() && (pings_.size() >= kPingsMax || now - pings_.front().sent >= policy_.lost_after)) {
    Count(pings_.front());
    lapsed_ |= !pings_.front().answered;
    if (!pings_.front().explained) working_fates_.Add(!pings_.front().answered);
    pings_.pop_front();
  }
}

void PairJudge::Count(const Ping& ping) {
  if (ping.sent - recent_.since >= kRecentSpan) {
    recent_before_ = ping.sent - recent_.since < 2 * kRecentSpan ? recent_ : Recent{};
    recent_ = {.since = ping.sent};
  }
  ++recent_.known;
  recent_.lost += ping.answered ? 0 : 1;
}

bool PairJudge::Answered(uint64_t sequence, Nanos received) {
  const auto ping = std::find_if(pings_.begin(), pings_.end(), [&](const Ping& one) { return one.sequence == sequence && !one.answered; });
  if (ping == pings_.end()) return false;
  ping->answered = true;
  received = std::max(received, ping->sent);
  const Nanos round_trip = received - ping->sent;
  if (round_trip <= patience() && ping->sent > witness_.until) {
    const Nanos overdue_before = received - patience();
    lapsed_ |= std::any_of(pings_.begin(), ping,
                           [&](const Ping& one) { return !one.answered && one.sent > witness_.until && one.sent <= overdue_before; });
    witness_ = {std::exchange(lapsed_, false) ? ping->sent : witness_.since, ping->sent};
  }
  answered_sent_ = std::max(answered_sent_, ping->sent);
  Learn(round_trip);
  ++measures_.answered;
  measures_.round_trip_last = round_trip;
  measures_.last_answer = received;
  OnAnswer(received);
  return true;
}

void PairJudge::OnAnswer(Nanos now) {
  if (state_ == PairState::kSilent) {
    proof_answers_ = 0;
    proof_since_ = now;
  }
  Step(PairEvent::kAnswer, now);
  if (state_ == PairState::kUp) missed_since_ = 0;
  if (state_ != PairState::kProving) return;
  if (++proof_answers_ < policy_.proof_answers || now - proof_since_ < ProofTime()) return;
  missed_since_ = 0;
  Step(PairEvent::kProved, now);
}

bool PairJudge::Waits(Nanos now) const {
  for (auto ping = pings_.rbegin(); ping != pings_.rend() && ping->sent > answered_sent_; ++ping)
    if (!ping->answered && ping->sent <= now - policy_.patience_min) return true;
  return false;
}

void PairJudge::Judge(Nanos now, std::span<const Witness> witnesses) {
  const Nanos overdue_before = now - patience();
  int misses = 0;
  Nanos first = 0;
  Nanos last = 0;
  for (Ping& ping : pings_) {
    if (ping.answered || ping.sent <= answered_sent_ || ping.sent > overdue_before) continue;
    ping.missed = ping.missed || std::any_of(witnesses.begin(), witnesses.end(), [&](const Witness& witness) {
                    return witness.since <= ping.sent && ping.sent <= witness.until;
                  });
    if (!ping.missed) continue;
    if (misses++ == 0) first = ping.sent;
    last = ping.sent;
  }
  if (misses == 0) return;
  if (state_ == PairState::kUp) missed_since_ = first;
  Step(PairEvent::kMiss, now);
  if (state_ != PairState::kLate || misses < MissesNeeded() || last - first < policy_.misses_span_min) return;
  flaps_.Count(now);
  for (Ping& ping : pings_) ping.explained |= ping.sent >= first;
  Step(PairEvent::kSilence, now);
}

int PairJudge::MissesNeeded() const {
  const double lost = (working_fates_.LostCount() + 1) / (working_fates_.known + kFatesPrior);
  int needed = 1;
  for (double chance = lost; chance > policy_.chance_max && needed < policy_.misses_max; chance *= lost) ++needed;
  return std::max(needed, policy_.misses_min);
}

void PairJudge::Forget() {
  pings_.clear();
  lapsed_ = true;
}

void PairJudge::Reset(Nanos now) {
  Forget();
  missed_since_ = 0;
  Step(PairEvent::kReset, now);
}

void PairJudge::Step(PairEvent event, Nanos now) {
  const PairState next = NextPairState(state_, event);
  if (next != state_) since_ = now;
  state_ = next;
}

void PairJudge::Learn(Nanos round_trip) {
  if (smoothed_ == 0) {
    smoothed_ = std::max<Nanos>(round_trip, 1);
    deviation_ = round_trip / 2;
    return;
  }
  deviation_ += (std::max(round_trip, smoothed_) - std::min(round_trip, smoothed_) - deviation_) / 4;
  smoothed_ = std::max<Nanos>(smoothed_ + (round_trip - smoothed_) / 8, 1);
}

Nanos PairJudge::patience() const { return std::clamp(smoothed_ + 4 * deviation_, policy_.patience_min, policy_.patience_max); }

Nanos PairJudge::ProofTime() const { return flaps_.ProofTime(policy_.proof_min, policy_.proof_max); }

PairMeasures PairJudge::measures() const {
  PairMeasures measures = measures_;
  measures.recent = recent_before_.known + recent_.known;
  measures.recent_lost = recent_before_.lost + recent_.lost;
  measures.round_trip = smoothed_;
  return measures;
}

}  // namespace r2cc::health
