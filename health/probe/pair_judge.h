// Judges one pair by its probes: which are overdue, what is silence, how long an answer takes. Pure: time is an argument.
//
// A late probe is not a lost one, and a stopped or busy daemon is no dead rail. So a probe is overdue only
//  - after a patience that is learnt from this pair's own answers, and
//  - if the same peer answered probes over another pair that left before and after it, with none between them lost: then the peer was
//    awake and could be reached. A peer that is silent on all its pairs for a while shows nothing about any of them.
// And silence is several overdue probes in a row over some time: one that was answered late clears all before it.
#ifndef R2CC_HEALTH_PROBE_PAIR_JUDGE_H_
#define R2CC_HEALTH_PROBE_PAIR_JUDGE_H_

#include <cstdint>
#include <deque>
#include <span>

#include "base/core/clock.h"
#include "base/core/flap_level.h"
#include "health/evidence/pair_state.h"
#include "health/evidence/pair_status.h"

namespace r2cc::health {

struct PairPolicy {
  // Overdue: the smoothed round trip and four times its deviation (as RFC 6298 sets a retransmission timer), within these bounds.
  Nanos patience_min = 30 * kNanosPerMs;
  Nanos patience_max = 250 * kNanosPerMs;
  // Silence: this many overdue probes in a row over this time. On a pair that always loses some probes more are needed, so that chance is
  // unlikely.
  int misses_min = 5;
  int misses_max = 20;
  Nanos misses_span_min = 120 * kNanosPerMs;
  double chance_max = 1e-8;
  // Back again: this many answers in a row, and this time since the first; it doubles with each silence, up to the maximum. Short, because
  // a pair under proof still counts as silent against both its ends; the NIC's own state machine keeps out a port that flaps.
  int proof_answers = 3;
  Nanos proof_min = 100 * kNanosPerMs;
  Nanos proof_max = kNanosPerSecond;
  // One silence is forgotten after this time without another.
  Nanos flap_decay = 60 * kNanosPerSecond;
  // A probe that has no answer after this time is lost, as far as loss is counted.
  Nanos lost_after = 2 * kNanosPerSecond;
};

// A time in which a peer answered one pair's probes, none lost: from when the first of them left until the latest did.
struct Witness {
  Nanos since = 0;
  Nanos until = 0;
};

class PairJudge {
 public:
  PairJudge(const PairPolicy& policy, Nanos now);

  // REQUIRES: `sequence` grows and `now` does not go back.
  void Sent(uint64_t sequence, Nanos now);

  // The answer to `sequence` arrived at `received` (the kernel's stamp, not later than now). False if nobody waits for it.
  bool Answered(uint64_t sequence, Nanos received);

  // A probe that left after the last answered one is old enough to be overdue, so Judge may have a result.
  bool Waits(Nanos now) const;

  // Looks for overdue probes. `witnesses`: of the same peer's other pairs.
  void Judge(Nanos now, std::span<const Witness> witnesses);

  // The probes that are outstanding may stay unanswered, and that proves nothing: the peer's daemon was restarted, or this kernel dropped
  // answers.
  void Forget();
  // As Forget, and forgets what was learnt of the state: a link is down.
  void Reset(Nanos now);

  PairState state() const { return state_; }
  Nanos since() const { return since_; }
  // Until the latest probe that was answered in time.
  const Witness& witness() const { return witness_; }
  // When the latest probe left that was answered at all.
  Nanos answered_sent() const { return answered_sent_; }
  // When the first of the overdue probes left that made the pair late or silent; 0: it is neither.
  Nanos missed_since() const { return missed_since_; }
  Nanos patience() const;
  PairMeasures measures() const;

 private:
  struct Ping {
    uint64_t sequence = 0;
    Nanos sent = 0;
    bool answered = false;
    bool missed = false;     // overdue
    bool explained = false;  // lost during silence: it does not count for what the pair loses when it works
  };
  // The last probes' fates.
  struct Fates {
    uint64_t lost = 0;   // by bit, the newest is bit 0
    uint32_t known = 0;  // at most 64

    void Add(bool was_lost);
    uint32_t LostCount() const;
  };
  void Step(PairEvent event, Nanos now);
  void OnAnswer(Nanos now);
  void Learn(Nanos round_trip);
  void DropOld(Nanos now);
  Nanos ProofTime() const;
  int MissesNeeded() const;

  const PairPolicy policy_;
  PairState state_ = PairState::kUnknown;
  Nanos since_;
  std::deque<Ping> pings_;   // oldest first
  Nanos answered_sent_ = 0;  // the latest probe that was answered left then: older ones are not overdue
  Witness witness_;
  bool lapsed_ = true;  // probes were lost since, or forgotten
  Nanos missed_since_ = 0;
  Nanos smoothed_ = 0;
  Nanos deviation_ = 0;
  int proof_answers_ = 0;
  Nanos proof_since_ = 0;
  FlapLevel flaps_;
  // Counts how many probes of the last seconds had an answer: two spans, of which the older one goes as a whole.
  struct Recent {
    Nanos since = 0;
    uint32_t known = 0;
    uint32_t lost = 0;
  };
  void Count(const Ping& ping);

  Recent recent_, recent_before_;  // of all, for people
  Fates working_fates_;            // of those outside of silences
  PairMeasures measures_;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_PROBE_PAIR_JUDGE_H_
