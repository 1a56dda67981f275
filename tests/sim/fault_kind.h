// The kinds of faults of the simulated world, by name.
#ifndef R2CC_TESTS_SIM_FAULT_KIND_H_
#define R2CC_TESTS_SIM_FAULT_KIND_H_

#include "tests/sim/rail_faults.h"

namespace r2cc::sim {

enum class FaultKind {
  // Channels; they heal.
  kCutSenderSees,    // a port or cable dies; the sender's link monitor says so
  kCutReceiverSees,  // the receiver's does
  kCutBothSee,
  kCutNoneSees,
  kSilenceForward,  // nothing arrives at the receiver, nobody is told
  kSilenceBack,     // nothing comes back
  kSilenceBoth,
  kClogShort,  // a stall without loss, shorter than R2CC_SILENCE_MS
  kClogLong,
  kFlap,
  kGray,              // the rate falls to 1/4 to 1/20
  kSwallowed,         // one connection, in one direction, for ever: others take another way
  kLargeLost,         // large packets, in one direction or both
  kDiesSlowly,        // one connection loses 9 of 10 packets, for ever
  kReset,             // connections are reset, the path is sound
  kRailReportedDown,  // the link monitor or R2CC_FAIL_RAILS reports the rail as down, packets still pass
  kDeadAtStart,
  // Connecting.
  kConnectRefused,
  kConnectUnanswered,  // the kernel accepts, nobody greets
  kFaultInConnect,
  kFaultInProof,
  // Channels together.
  kOobLost,
  kOobReset,
  kPartition,     // every channel between two processes
  kAllRailsDown,  // of one process; the out-of-band channel stays
  kFaultInFence,  // a second link is lost while the first is being fenced
  kFaultInReplay,
  kLastAckLost,  // a channel dies as its receiver closes
  // Devices.
  kCloseLate,   // a process's links end late, and move bytes until then
  kCloseFails,  // they cannot be ended for a while
  kDeviceLost,  // with all its links; it comes back
  kRenumbered,  // a rail loses its address, and has another one later
  // Of RDMA devices.
  kQueuePairError,   // queue pairs go to the error state by themselves, and no event says so
  kStatus,           // a completion says an error
  kPostFails,        // a request or a receive is not taken
  kSlowCalls,        // changing queue pairs takes long
  kStalledPair,      // a queue pair takes requests and reports the end of none, for ever; others do
  kStalledDevice,    // so do all of a device
  kCompletionError,  // a completion queue is lost
  // The page.
  kVerdict,
  kWeight,
  kPathVerdict,
  // Processes.
  kStopShort,
  kStopLong,
  kPause,
  kReaderStuck,     // it reads no bulk, and does all else
  kDeath,           // every connection ends
  kDeathHeldOpen,   // a forked child keeps the connections
  kVanish,          // the whole host: no packet, no answer
  kAbort,           // one end closes with requests outstanding
  kBeyondDeadline,  // no rail for longer than the deadline
  kCloseNever,      // a link that is lost cannot be ended
  // Daemons, in a world that has them.
  kDaemonKilled,  // and comes back
  kDaemonEnded,   // on purpose, as for an upgrade; and comes back
  kDaemonPaused,  // stopped by a signal
  kStoreDown,
  kIsolated,   // no management network: no other daemon, no store, no out-of-band connection
  kDrained,    // by an operator
  kClockStep,  // the time of day of a machine jumps
  kCrash,      // of a process, in a world whose job has further runs
};
bool HappensTo(Rails rails, FaultKind kind);
constexpr int kFaultKinds = static_cast<int>(FaultKind::kCrash) + 1;
const char* Name(FaultKind kind);

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_FAULT_KIND_H_
