// Judges whether large packets pass where small ones do, by the large probes of one pair. Pure: time is an argument.
//
// A large ping leaves with a small one. It counts as missed if the small one, or a later one, was answered and it was not, within the
// patience that the pair has shown. So a stopped or busy peer, and a silent pair, show nothing here. Several misses in a row over some time
// are a loss: a switch port whose MTU was reset, or a route with a smaller MTU. Single ones are congestion.
#ifndef R2CC_HEALTH_PROBE_LARGE_JUDGE_H_
#define R2CC_HEALTH_PROBE_LARGE_JUDGE_H_

#include <cstddef>
#include <cstdint>
#include <deque>

#include "base/core/clock.h"
#include "base/core/flap_level.h"
#include "health/evidence/large_loss.h"
#include "health/evidence/pair_state.h"

namespace r2cc::health {

struct LargePolicy {
  // Lost: this many full-sized probes in a row, over this time. Both are more than silence takes, because a queue that is nearly full drops
  // large packets and still has room for small ones.
  int misses_min = 6;
  Nanos misses_span_min = 200 * kNanosPerMs;
  // If full-sized probes are lost now and then while others pass, this many more are needed, so that chance is unlikely.
  int misses_max = 40;
  double chance_max = 1e-8;
  // They pass again: this many answers in a row over this time, which doubles with each loss up to the maximum.
  int proof_answers = 4;
  Nanos proof_min = 100 * kNanosPerMs;
  Nanos proof_max = 5 * kNanosPerSecond;
  Nanos flap_decay = 60 * kNanosPerSecond;
  // A ping that has no answer after this time is not waited for.
  Nanos lost_after = 2 * kNanosPerSecond;
};

// The next common size of a packet below `bytes`, with the IP header: 0 if there is none.
size_t NextSizeBelow(size_t bytes);

class LargeJudge {
 public:
  explicit LargeJudge(const LargePolicy& policy) : policy_(policy), flaps_(policy.flap_decay, kFlapLevelMax) {}

  // Sets the packet size that must pass; 0: none is probed. Another size begins from the start.
  void SetFull(size_t packet_bytes);
  size_t full() const { return full_; }

  // The size to probe next: full, or a smaller size while the largest size that passes is searched. REQUIRES: full() is not 0.
  size_t NextSize();

  void Sent(uint64_t sequence, size_t packet_bytes, Nanos now);
  // The answer of that length came; the peer reports that the ping arrived. False: no probe waits for it.
  bool Answered(uint64_t sequence, Nanos received);
  bool Arrived(uint64_t sequence);
  // A large ping of the peer came in.
  void PingCame(size_t packet_bytes, Nanos received) {
    if (packet_bytes >= full_) ping_came_ = received;
  }

  // `small_answered_sent`: when the latest small ping left that was answered.
  void Judge(Nanos now, Nanos patience, Nanos small_answered_sent);

  // The probes that are outstanding may stay unanswered, and that proves nothing.
  void Forget() { pings_.clear(); }
  // Nothing is known any more.
  void Reset();

  // kSilent: full ones are lost.
  PairVerdict verdict() const { return verdict_; }
  // The latest ping is neither answered nor known to be missed, and that may change what is known.
  bool Awaits() const { return !pings_.empty() && !lost() && !pings_.back().answered && !pings_.back().missed; }
  // Something is missing, or under proof: to be asked in quick succession.
  bool unsettled() const { return misses_ > 0 || proof_answers_ > 0; }
  bool lost() const { return verdict_ == PairVerdict::kSilent; }
  LargeLoss loss() const;
  // When the latest full one left that was answered; 0: none was.
  Nanos answered_sent() const { return answered_sent_; }
  // When the first one left of those that are missing; 0: none is.
  Nanos missed_since() const { return missed_since_; }

 private:
  static constexpr uint32_t kFlapLevelMax = 16;
  struct Ping {
    uint64_t sequence = 0;
    size_t packet_bytes = 0;
    Nanos sent = 0;
    bool answered = false;
    bool missed = false;
    bool counted = false;  // in the loss rate, or not to be
  };
  Ping* Find(uint64_t sequence);
  void OnFullAnswer(Nanos sent, Nanos received);
  void ForgetLoss();
  int MissesNeeded() const;

  const LargePolicy policy_;
  size_t full_ = 0;
  std::deque<Ping> pings_;  // oldest first
  PairVerdict verdict_ = PairVerdict::kUnknown;
  Nanos answered_sent_ = 0;
  Nanos missed_since_ = 0;
  int misses_ = 0;         // full ones, in a row
  double loss_rate_ = 0;   // of full ones while they pass, smoothed: what was lost before one that was answered
  int proof_answers_ = 0;  // in a row, while they count as lost
  Nanos proof_since_ = 0;
  FlapLevel flaps_;
  // Since missed_since_: of smaller ones, what passed at most and what did not at least; and what came each way.
  size_t passed_ = 0;
  size_t failed_ = 0;
  bool small_turn_ = false;
  Nanos arrived_ = 0;
  Nanos ping_came_ = 0;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_PROBE_LARGE_JUDGE_H_
