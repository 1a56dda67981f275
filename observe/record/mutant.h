// Mutants: bugs that tests switch on in the production source, to prove that the checkers see them. R2CC_SHIPPED is defined in what is
// compiled to be shipped (bazel/link_time_optimization.bzl): no mutant is ever active there, and the compiler drops the switches.
#ifndef R2CC_OBSERVE_RECORD_MUTANT_H_
#define R2CC_OBSERVE_RECORD_MUTANT_H_

#include "observe/record/record.h"

namespace r2cc::observe {

enum class TapMutant {
  kNothing,
  kDeviceScopeRelease,     // the head is published for the device alone
  kOldHead,                // room is judged by the head of the step before
  kOtherTail,              // room is judged by another producer's tail
  kNextTag,                // a tag is read when the next step has begun
  kNoTrailer,              // a record has no trailer
  kWrapOffByOne,           // a record that ends with the ring goes one unit beyond it
  kSlotFreedEarly,         // the device's slot is freed when its copy has begun
  kCursorBeyondHead,       // a cursor beyond the head is believed
  kDropUncounted,          // a dropped step is not counted
  kOldLayout,              // a record names the layout of the step before
  kPublishedEarly,         // a record is published before all blocks have arrived
  kHoldByOrder,            // a stub gets the oldest hold instead of its own
  kHeldBeforeRecords,      // a stub's outcome is shown before the record that it may be
  kOldMask,                // offsets are those of the groups of the step before
  kRowsReadLate,           // each launch of a step reads the rows where the program has them
  kFailedCheckStaysLate,   // a tap that is overwritten before the step's end is still read there
  kCommittedBeforeCopied,  // the host's ring shows a record while pieces of it are on their way
};

#if defined(R2CC_SHIPPED) || defined(__CUDACC__)
constexpr R2CC_OBSERVE_BOTH bool IsActive(TapMutant) { return false; }
#else
inline TapMutant mutant = TapMutant::kNothing;
inline bool IsActive(TapMutant bug) { return mutant == bug; }
#endif

}  // namespace r2cc::observe

#endif  // R2CC_OBSERVE_RECORD_MUTANT_H_
