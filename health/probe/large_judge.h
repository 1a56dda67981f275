// Judges whether large packets pass where small ones do, by the large probes of one pair. Pure: time is an argument.
//
// A large ping leaves with a small one. It is missed if the small one, or a later one, was answered and it was not, in the patience that
// the pair has shown. So a peer that is stopped or busy, and a pair that is silent, show nothing here. Several misses in a row over some
// time are a loss: a switch port whose MTU was reset, or a route with less. Single ones are congestion.
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
  // Lost: so many full ones in a row, over this time. More of each than a silence takes, as a queue that is nearly full drops what is large
  // and has room for what is small.
  int misses_min = 6;
  Nanos misses_span_min = 200 * kNanosPerMs;
  // Where full ones are lost now and then while they pass, as many more as make chance unlikely.
  int misses_max = 40;
  double chance_max = 1e-8;
  // They pass again: so many answers in a row over this time, which doubles with each loss up to the maximum.
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

  // The size of packet that must pass; 0: none is asked. Another one begins anew.
  void SetFull(size_t packet_bytes);
  size_t full() const { return full_; }

  // What to ask next: full, or a smaller size while it is to be found out what passes. REQUIRES: full() is not 0.
  size_t NextSize();

  void Sent(uint64_t sequence, size_t packet_bytes, Nanos now);
  // The answer of that length came; the peer says that the ping did. False: nobody waits for it.
  bool Answered(uint64_t sequence, Nanos received);
  bool Heard(uint64_t sequence);
  // A large ping of the peer came in.
  void PingCame(size_t packet_bytes, Nanos received) {
    if (packet_bytes >= full_) ping_came_ = received;
  }

  // `small_answered_sent`: when the latest small ping left that was answered.
  void Judge(Nanos now, Nanos patience, Nanos small_answered_sent);

  // The probes under way may not be answered, and that says nothing.
  void Forget() { pings_.clear(); }
  // Nothing is known any more.
  void Reset();

  // kSilent: full ones are lost.
  PairVerdict verdict() const { return verdict_; }
  // The latest ping is neither answered nor known to be missed, and that may change what is known.
  bool Awaits() const { return !pings_.empty() && !lost() && !pings_.back().answered && !pings_.back().missed; }
  // Something is missing, or under proof: to be asked in quick succession.
  bool doubtful() const { return misses_ > 0 || proof_answers_ > 0; }
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
  Nanos heard_ = 0;
  Nanos ping_came_ = 0;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_PROBE_LARGE_JUDGE_H_
