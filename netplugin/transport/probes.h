// Probes whether any process listens at a peer's out-of-band address, over one connection for each address. Pure: the owner
// of the connections carries out the actions, time is an argument; one thread at a time.
//
// The connection stays open as long as the peer's kernel answers its keep-alives, however long the peer's process is stopped. It takes one
// place in the queue of connections that the process has not accepted. One connection for each question would fill the queue within
// minutes, and a full queue is as silent as a host that has vanished.
//
// A connection shows nothing about the time after it was made: the peer's process may have accepted it, and a child of that process may
// hold it open after the process has ended. So an asker that has heard from the peer since the connection was made gets a new connection.
//
// A process that runs hangs up, because a probe does not greet. Who waits for the peer learns that: the peer's own process would have come
// back, so another one may have its address.
#ifndef R2CC_NETPLUGIN_TRANSPORT_PROBES_H_
#define R2CC_NETPLUGIN_TRANSPORT_PROBES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/core/clock.h"
#include "netplugin/link/action.h"
#include "netplugin/transport/oob.h"

namespace r2cc::net {

enum class ProbeState : uint8_t { kNone, kConnecting, kStanding };

enum class ProbeEvent : uint8_t {
  kAsked,       // the connection that exists, or will exist, is an answer
  kAskedAgain,  // the connection is too old to be an answer
  kConnected,
  kEnded,    // refused, reset, or without an answer to its keep-alives
  kLate,     // the attempt has had no answer for kConnectMost
  kUnasked,  // no question came for kProbeUnaskedFor
};

enum class ProbeStep : uint8_t { kImpossible, kNothing, kConnect, kReplace, kStand, kFail, kGiveUp, kForget, kClose };

// What to do. An impossible pair ends the process.
ProbeStep StepOf(ProbeState state, ProbeEvent event);

class Probes {
 public:
  struct Question {
    Nanos asked = 0;
    Nanos last_received = 0;  // when the asker last heard from the peer's process
  };
  void Ask(const OobAddress& peer, const Question& question);
  // None: not known yet.
  std::optional<ProbeResult> AnswerTo(const OobAddress& peer, const Question& question) const;

  // ---- for the owner of the connections ----

  struct ConnectionAction {
    enum class Kind { kConnect, kClose };  // with keep-alive; answered with Connected() or Ended(). A close has no answer.
    Kind kind;
    uint64_t connection;
    OobAddress peer;
  };
  std::vector<ConnectionAction> TakeActions() { return std::exchange(actions_, {}); }
  // These do nothing for connections that are closed. kRuns: the other end closed it in order.
  void Connected(uint64_t connection, Nanos now);
  void Ended(uint64_t connection, ProbeResult result, Nanos now);
  void Tick(Nanos now);

 private:
  struct Probe {
    ProbeState state = ProbeState::kNone;
    uint64_t connection = 0;
    Nanos since = 0;  // of the state
    Nanos asked = 0;
    // How the last attempt failed, and when; 0: none has.
    ProbeResult failure = ProbeResult::kSilent;
    Nanos failed = 0;
    Nanos hung_up = 0;  // a process there hung up last; 0: none has
  };
  using Entry = std::map<OobAddress, Probe>::iterator;
  Entry Find(uint64_t connection);
  void Do(Entry at, ProbeEvent event, ProbeResult result, Nanos now);
  void Enter(Probe* probe, ProbeState state, Nanos now);
  void Connect(Entry at, Nanos now);
  void Close(Entry at);

  std::map<OobAddress, Probe> probes_;
  std::map<uint64_t, OobAddress> connections_;
  std::vector<ConnectionAction> actions_;
  uint64_t next_connection_ = 1;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_PROBES_H_
