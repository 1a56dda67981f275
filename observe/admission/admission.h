// Whether a step is taken, and where in a ring it goes: one pure function for the host, for kernels and for the fake device.
//
// The thread that publishes step n reads the host's words once and stores them; every block of step n+1 decides by these, so all decide
// alike. A tail that is old by then is safe, as tails only advance: a step may be dropped for which there would have been room.
#ifndef R2CC_OBSERVE_ADMISSION_ADMISSION_H_
#define R2CC_OBSERVE_ADMISSION_ADMISSION_H_

#include <cstdint>

#include "observe/record/mutant.h"
#include "observe/record/record.h"

namespace r2cc::observe {

enum class Phase : uint64_t { kDecode = 1, kPrefill = 2 };

// The host's values, written by one thread.
struct HostWords {
  uint64_t tail = 0;      // bytes of the ring that are free again, counted from the start
  uint64_t released = 0;  // the same in records
  uint64_t groups = 0;    // that are on
  uint64_t every = 1;     // each n-th step is wanted
  uint64_t phases = 3;    // the sum of those that are wanted
  uint64_t closed = 0;    // 1: nothing is wanted any more
};

// All state of a producer, in its device's memory.
struct StepState {
  uint64_t step = 0, sequence = 0, head = 0, dropped = 0, unwanted = 0;
  uint64_t layout = 0;  // of the latest record
  HostWords words;
};

enum class Verdict : uint64_t { kTake, kDrop, kUnwanted };

struct Decision {
  Verdict verdict = Verdict::kUnwanted;
  uint64_t pad = 0;    // bytes of the pad before the record
  uint64_t begin = 0;  // of the record, counted from the start like head
};

// A record is contiguous: if the remaining part of the ring is too short, a pad fills it. REQUIRES: bytes and ring_bytes are multiples of
// kRecordAlignment.
inline R2CC_OBSERVE_BOTH Decision PlaceRecord(uint64_t head, uint64_t tail, uint64_t bytes, uint64_t ring_bytes) {
  const uint64_t rest = ring_bytes - head % ring_bytes;
  const uint64_t needed = IsActive(TapMutant::kWrapOffByOne) ? bytes - kRecordAlignment : bytes;
  const uint64_t pad = needed > rest ? rest : 0;
  const bool fits = bytes <= ring_bytes && head + pad + bytes - tail <= ring_bytes;
  return {fits ? Verdict::kTake : Verdict::kDrop, pad, head + pad};
}

inline R2CC_OBSERVE_BOTH bool Wanted(uint64_t step, Phase phase, const HostWords& words) {
  return words.closed == 0 && words.groups != 0 && words.every != 0 && step % words.every == 0 &&
         (words.phases & static_cast<uint64_t>(phase)) != 0;
}

// `bytes`: of the record with words.groups. `records_most`: that may lie in the ring at a time.
inline R2CC_OBSERVE_BOTH Decision Decide(const StepState& state, Phase phase, uint64_t bytes, uint64_t ring_bytes, uint64_t records_most) {
  if (!Wanted(state.step, phase, state.words)) return {Verdict::kUnwanted, 0, state.head};
  if (state.sequence - state.words.released >= records_most) return {Verdict::kDrop, 0, state.head};
  const uint64_t tail = IsActive(TapMutant::kOldHead) ? state.words.tail + bytes : state.words.tail;
  return PlaceRecord(state.head, tail, bytes, ring_bytes);
}

// The state after the step.
inline R2CC_OBSERVE_BOTH void Advance(StepState* state, const Decision& decision, uint64_t bytes) {
  ++state->step;
  if (decision.verdict == Verdict::kTake) {
    ++state->sequence;
    state->head = decision.begin + bytes;
  } else if (decision.verdict == Verdict::kDrop) {
    if (!IsActive(TapMutant::kDropUncounted)) ++state->dropped;
  } else {
    ++state->unwanted;
  }
}

}  // namespace r2cc::observe

#endif  // R2CC_OBSERVE_ADMISSION_ADMISSION_H_
