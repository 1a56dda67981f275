// Holds the results of the probes of one pair. Plain values: the prober makes them, the view judges by them.
#ifndef R2CC_HEALTH_EVIDENCE_PAIR_STATUS_H_
#define R2CC_HEALTH_EVIDENCE_PAIR_STATUS_H_

#include <cstdint>

#include "base/core/clock.h"
#include "health/evidence/large_loss.h"
#include "health/evidence/pair_state.h"

namespace r2cc::health {

// Measures of a pair for a person.
struct PairMeasures {
  uint64_t sent = 0;
  uint64_t answered = 0;
  uint32_t recent = 0;       // probes of 5 to 10 s whose result is known, up to the newest of them
  uint32_t recent_lost = 0;  // of those
  Nanos round_trip = 0;      // smoothed; 0: never answered
  Nanos round_trip_last = 0;
  Nanos last_answer = 0;  // when; 0: never
};

struct RailPairStatus {
  PairKey key;
  bool active = false;
  PairState state = PairState::kUnknown;
  // The state as others see it. A pair is probed often once other nodes suspect its peer's NIC. From then on only new answers count: until
  // one comes, an answering pair is kUnknown.
  PairVerdict verdict = PairVerdict::kUnknown;
  // The same, and stricter where the own NIC is silent on more pairs than one fault makes suspect. There an answer counts only if its
  // probe left after the silence began, so that old answers do not make a dead NIC look alive.
  PairVerdict fresh_verdict = PairVerdict::kUnknown;
  Nanos since = 0;
  Nanos missed_since = 0;   // when the first overdue probe left; 0: none is
  Nanos answered_sent = 0;  // when the latest probe that was answered left; 0: none was
  PairMeasures measures;
  // Whether packets of the rail's MTU pass where small ones do: kUnknown, if it is not asked or the last answer is old news.
  PairVerdict large = PairVerdict::kUnknown;
  LargeLoss loss = {};  // if they do not
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_EVIDENCE_PAIR_STATUS_H_
