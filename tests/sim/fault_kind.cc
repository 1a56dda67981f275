#include "tests/sim/fault_kind.h"

#include <set>

namespace r2cc::sim {

const char* Name(FaultKind kind) {
  switch (kind) {
    case FaultKind::kCutSenderSees: return "cut, sender sees";
    case FaultKind::kCutReceiverSees: return "cut, receiver sees";
    case FaultKind::kCutBothSee: return "cut, both see";
    case FaultKind::kCutNoneSees: return "cut, nobody sees";
    case FaultKind::kSilenceForward: return "silence forward";
    case FaultKind::kSilenceBack: return "silence back";
    case FaultKind::kSilenceBoth: return "silence both ways";
    case FaultKind::kClogShort: return "clog, short";
    case FaultKind::kClogLong: return "clog, long";
    case FaultKind::kFlap: return "flap";
    case FaultKind::kGray: return "gray";
    case FaultKind::kSwallowed: return "connection swallowed";
    case FaultKind::kLargeLost: return "large packets lost";
    case FaultKind::kDiesSlowly: return "connection dies slowly";
    case FaultKind::kReset: return "connection reset";
    case FaultKind::kRailReportedDown: return "rail reported down";
    case FaultKind::kDeadAtStart: return "dead at start";
    case FaultKind::kConnectRefused: return "connect refused";
    case FaultKind::kConnectUnanswered: return "connect unanswered";
    case FaultKind::kFaultInConnect: return "fault in connect";
    case FaultKind::kFaultInProof: return "fault in proof";
    case FaultKind::kOobLost: return "out-of-band lost";
    case FaultKind::kOobReset: return "out-of-band reset";
    case FaultKind::kPartition: return "partition";
    case FaultKind::kAllRailsDown: return "all rails down";
    case FaultKind::kFaultInFence: return "fault in fence";
    case FaultKind::kFaultInReplay: return "fault in replay";
    case FaultKind::kLastAckLost: return "last ack lost";
    case FaultKind::kCloseLate: return "close late";
    case FaultKind::kCloseFails: return "close fails";
    case FaultKind::kDeviceLost: return "device lost";
    case FaultKind::kRenumbered: return "rail renumbered";
    case FaultKind::kQueuePairError: return "queue pair error";
    case FaultKind::kStatus: return "completion with an error";
    case FaultKind::kPostFails: return "post fails";
    case FaultKind::kSlowCalls: return "slow calls";
    case FaultKind::kStalledPair: return "stalled queue pair";
    case FaultKind::kStalledDevice: return "stalled device";
    case FaultKind::kCompletionError: return "completion queue error";
    case FaultKind::kVerdict: return "page verdict";
    case FaultKind::kWeight: return "page weight";
    case FaultKind::kPathVerdict: return "page verdict on a path";
    case FaultKind::kStopShort: return "stop, short";
    case FaultKind::kStopLong: return "stop, long";
    case FaultKind::kPause: return "pause";
    case FaultKind::kReaderStuck: return "reader stuck";
    case FaultKind::kDeath: return "death";
    case FaultKind::kDeathHeldOpen: return "death, held open";
    case FaultKind::kVanish: return "vanish";
    case FaultKind::kAbort: return "abort";
    case FaultKind::kBeyondDeadline: return "beyond deadline";
    case FaultKind::kCloseNever: return "close never";
    case FaultKind::kDaemonKilled: return "daemon killed";
    case FaultKind::kDaemonEnded: return "daemon ended";
    case FaultKind::kDaemonPaused: return "daemon paused";
    case FaultKind::kStoreDown: return "store down";
    case FaultKind::kIsolated: return "isolated";
    case FaultKind::kDrained: return "drained";
    case FaultKind::kClockStep: return "clock step";
    case FaultKind::kCrash: return "crash";
  }
  return "unknown";
}

bool HappensTo(Rails rails, FaultKind kind) {
  // Nobody connects to a device, and its packets are its own affair but for their size.
  static const std::set<FaultKind> kOfSockets = {FaultKind::kConnectRefused, FaultKind::kConnectUnanswered, FaultKind::kSwallowed,
                                                 FaultKind::kDiesSlowly, FaultKind::kReaderStuck};
  if (kind >= FaultKind::kDaemonKilled) return false;
  if (rails == Rails::kVerbs) return !kOfSockets.contains(kind);
  return kind < FaultKind::kQueuePairError || kind > FaultKind::kCompletionError;
}

}  // namespace r2cc::sim
