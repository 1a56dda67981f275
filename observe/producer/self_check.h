// Finds where each tap may be copied: at the step's end, or only at its point. A tensor that something overwrites between the two is found
// by hashes of a step that is checked. Pure.
#ifndef R2CC_OBSERVE_PRODUCER_SELF_CHECK_H_
#define R2CC_OBSERVE_PRODUCER_SELF_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "observe/record/mutant.h"

namespace r2cc::observe {

enum class Placement : uint8_t {
  kLate,    // with all others, when the step ends
  kInline,  // at its point
};

struct Checked {
  uint64_t hash_at_point = 0, hash_at_end = 0;
};

inline Placement PlacementOf(const Checked& checked) {
  if (IsActive(TapMutant::kFailedCheckStaysLate)) return Placement::kLate;
  return checked.hash_at_point == checked.hash_at_end ? Placement::kLate : Placement::kInline;
}

// Tags of a captured loop are those of the next step at its end: they are copied when the step begins.
inline Placement PlacementOfTags() { return IsActive(TapMutant::kNextTag) ? Placement::kLate : Placement::kInline; }

}  // namespace r2cc::observe

#endif  // R2CC_OBSERVE_PRODUCER_SELF_CHECK_H_
