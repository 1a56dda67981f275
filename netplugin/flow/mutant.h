// Names bugs (mutants) that tests switch on in the production source, one per point of the lossless contract, to prove that the checkers
// detect them. R2CC_SHIPPED is defined in shipped code (bazel/link_time_optimization.bzl): no mutant is ever active there, and the compiler
// drops the switches.
#ifndef R2CC_NETPLUGIN_FLOW_MUTANT_H_
#define R2CC_NETPLUGIN_FLOW_MUTANT_H_

#include <cstdlib>

namespace r2cc::net {

enum class Mutant {
  kNothing,
  // Grants and the eager path.
  kUngranted,      // a message leaves before its buffer was posted
  kGrantDropped,   // a grant that is not sent counts as sent
  kEagerCredit,    // more eager messages travel than the receiver stages
  kEagerUncopied,  // an eager message is reported done without a copy
  kEagerFreed,     // the copy of an eager message goes when it has left, not when it is acknowledged
  kOffBoundary,    // chunks are cut off the 128-byte boundary
  kZeroForgotten,  // messages of zero bytes are not delivered
  // Acknowledgements.
  kDoneWhenSent,        // a send is done when it has left
  kAckBeforePlacement,  // a message is acknowledged when its buffer is posted
  kNotResent,           // grants and acknowledgements are not repeated after a channel was lost
  kSentOnce,            // a frame that should be repeated until it is answered is sent once
  kByeLost,             // a receiver that closes does not report what it has
  // Placement.
  kEarlyDone,       // a receive is done with a chunk missing
  kDoubleDelivery,  // a chunk that has arrived is requested, and written, again
  kLateWrite,       // chunks of a closed flow are still written to its buffers
  kClaimKept,       // a fenced link keeps its claim on half-read chunks
  // Fences.
  kFenceMissing,      // replay before the receiver has answered
  kFenceUnfulfilled,  // the receiver answers and does not end the link
  kFencedEarly,       // the receiver answers before the link is closed
  kFenceStale,        // the answer about an old incarnation counts for the present one
  kFalseFence,        // a channel is given up although no other one answers
  kFalseError,        // an error although a path is left
  // Progress.
  kControlIsProgress,      // answers on the control channel count as progress of the chunks
  kClosedWindowIsSilence,  // a peer that does not read counts as one that is silent
  kOthersProgress,         // what other links deliver counts as progress of a link
  // What a transport promises.
  kCloseNotAwaited,       // a link counts as closed when its close has begun
  kCloseFailureUnheeded,  // a link that could not be closed counts as closed
  kForgottenEarly,        // a receiver's flow is closed while a link may still write its buffers
  kStaleCompletion,       // a late completion of an old incarnation counts for the live one
  kWorkerUnreported,      // a worker does not report what it has moved
  // Workers.
  kCloseDoesNotWait,  // a flow is closed while a worker's call, or a half-sent chunk, still needs its buffer
  kProofsPerLink,     // two data checks on one socket count as those of two sockets
  // Keys.
  kKeyMissing,  // a message leaves before the keys to its buffer are here
  kKeyStale,    // the first keys are used forever
  // Verbs links.
  kFenceSkipped,      // a link counts as closed while its queue pair is unchanged
  kTicketReused,      // a ticket names another message while a message that had it is still being written
  kFlushLeftOut,      // one of the devices that carried a message to a GPU is not flushed
  kSuccessorTheSame,  // the next queue pair has the number and the sequence numbers of the last one
  kErrorIsGone,       // a call that returns EIO or ENODEV counts as proof that the device is gone
  kNoOwnReceive,      // a fence waits for a receive that the peer may have used up
  kTornByClose,       // a link ends when a flow is closed whose buffers the link may still write
  kSameDomain,        // memory is registered again in the domain of the queue pair that could not be ended
  // Shares. The simulation's checkers do not check them: link/fair_weights_test does.
  kWeightIgnored,  // flows share a link equally whatever their weights
  // What daemons and kernels say. //tests/world looks at them.
  kPageFrozen,           // the first page with a plan is in force for ever
  kNamesUnheeded,        // rails keep the job's names, whatever the daemon calls them
  kPeerVerdictUnheeded,  // a page's word on the NICs of a peer is left out
  kOwnerUnproved,        // an entry of the page counts for every name with its hashes
  kRepairUnheeded,       // a rail that has come back is not used again
  kFormerTarget,         // a greeting counts for whichever process has the address now
  kRegionKept,           // memory that the peer has unregistered stays known
};

#ifdef R2CC_SHIPPED
constexpr bool IsActive(Mutant) { return false; }
#else
// The mutant whose number is in R2CC_MUTANT.
inline Mutant MutantByEnvironment() {
  const char* const number = std::getenv("R2CC_MUTANT");
  return number == nullptr ? Mutant::kNothing : static_cast<Mutant>(std::atoi(number));
}
inline thread_local Mutant mutant = MutantByEnvironment();
inline bool IsActive(Mutant bug) { return mutant == bug; }
#endif

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_FLOW_MUTANT_H_
