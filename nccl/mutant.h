// Mutants: bugs that tests switch on in the production source, to prove that the checkers see them. R2CC_SHIPPED is
// defined in what is compiled to be shipped (bazel/link_time_optimization.bzl): no mutant is ever active there, and the compiler drops the
// switches.
#ifndef R2CC_NCCL_MUTANT_H_
#define R2CC_NCCL_MUTANT_H_

namespace r2cc::nccl {

enum class SeatMutant {
  kNothing,
  kCountsCaptured,            // a call in a capture is counted, and may have to decide
  kRedirectsCustomOperators,  // the child is used with an operator that belongs to the parent
  kDecidesFromOwnState,       // what this node keeps is taken from now, not from the vector
  kDecidesEarly,              // the vector is read although it may not be complete
  kSplitsInGroup,             // a group is not looked at
  kSplitsWithWorkUnderWay,    // the stream is not waited for
  kUsesChildEarly,            // the child is used before all ranks have reported that they have it
  kForgetsRegistration,       // buffers of the parent are not registered with the child
  kLeaksChild,                // the end of the parent is not the child's
  kAbortsParentAlone,         // an abort reaches the parent only
  kGoesOnAfterAbort,          // a call that waited while another thread aborted uses the communicator again
  kForgetsOrder,              // parent and child may run side by side
  kHidesChildsError,          // the child's asynchronous error is not the parent's
  kDoesNotSettle,             // of a communicator that does not block the next call does not wait for the one before
  kSetsNoWay,                 // the tuner is not asked for CollNet
  kKeepsWay,                  // CollNet is asked for beyond the call that was agreed on
  kCallsNoRoll,               // ranks without the library are not looked for
  kIgnoresDifferences,        // ranks with other settings take part
  kGoesOnWithoutVerdict,      // a rank that cannot learn the verdict does not take part
  kKeepsUnconfirmedChild,     // a child stays although not all ranks have reported that they have it
};

#ifdef R2CC_SHIPPED
constexpr bool IsActive(SeatMutant) { return false; }
#else
inline SeatMutant mutant = SeatMutant::kNothing;
inline bool IsActive(SeatMutant bug) { return mutant == bug; }
#endif

}  // namespace r2cc::nccl

#endif  // R2CC_NCCL_MUTANT_H_
