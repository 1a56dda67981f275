// Identifies the other end of a connection before gRPC sees it: asks GatePolicy whether it may come in, and carries the bytes of those that
// may to gRPC over a socket pair. So no unauthenticated caller reaches HTTP/2.
#ifndef R2CC_DAEMON_RPC_GATE_H_
#define R2CC_DAEMON_RPC_GATE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/event_loop.h"
#include "daemon/rpc/client_end.h"
#include "daemon/rpc/gate_policy.h"
#include "daemon/rpc/http2_meter.h"
#include "daemon/rpc/origins.h"
#include "daemon/trust/refusals.h"

namespace r2cc::daemon {

// On `loop`'s thread.
class Gate {
 public:
  using Admission = GatePolicy::Admission;
  // A TLS handshake is three packets: the time is for a client that waits for a processor.
  static constexpr Nanos kGreetingFor = 5 * kNanosPerSecond;
  // A client that takes none of what is sent to it.
  static constexpr Nanos kStalledFor = 20 * kNanosPerSecond;
  // Time of a rejected connection to ask, get the answer and close: some round trips. kLeavingMax of them leave at a time, which limits how
  // many a second get the reason.
  static constexpr Nanos kLeavingFor = kNanosPerSecond;

  struct Parts {
    EventLoop* loop;
    Origins* origins;
    Refusals* refusals;
    std::string listener;  // for refusals
    Http2Bounds bounds;
    // Owns the descriptor that it is called with.
    std::function<void(int fd)> to_server;
    // Judges a caller after the handshake, and counts refusals. The client gets the message.
    std::function<absl::StatusOr<Admission>(const Origin&)> admit;
  };

  explicit Gate(Parts parts);
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // Takes a connection. Null is ignored.
  void Take(std::unique_ptr<ClientEnd> client, Caller caller);
  // Judges all again, now.
  void JudgeAll();

 private:
  // One conversation.
  struct Relay;

  // Carries what there is, in both directions, as long as there is some; not for ever.
  void Pump(uint64_t id);
  // False: the relay is gone, or is leaving.
  bool Greet(Relay* relay);
  bool Admit(Relay* relay);
  bool FromClient(Relay* relay, bool* moved);
  bool FromServer(Relay* relay, bool* moved);
  bool ConnectServer(Relay* relay);
  void Watch(Relay* relay);
  // Counts it, and turns it away.
  void Refuse(Relay* relay, const std::string& reason, const std::string& why);
  // Ends it. If it was not admitted yet, it first gets `why` as the answer to its first call.
  void TurnAway(Relay* relay, const absl::Status& why);
  // Ends it once the client has what was sent.
  void Leave(Relay* relay);
  void CloseServer(Relay* relay);
  void End(Relay* relay);
  // It greets no more.
  void EndGreeting(Relay* relay);
  void ArmSweep(Nanos delay);
  void Sweep();

  const Parts parts_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for tasks that are posted
  std::map<uint64_t, std::unique_ptr<Relay>> relays_;                 // the oldest first
  GatePolicy policy_;
  uint64_t last_id_ = 0;
  TimerId sweep_ = 0;
  Nanos sweep_at_ = 0;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_GATE_H_
