// Stands between a listener and gRPC: finds out who is at the other end of a connection, asks GatePolicy whether it may come in, and
// carries the bytes of those that may to gRPC over a socket pair. So nobody who has not proved who he is reaches HTTP/2.
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
  // A TLS greeting is three packets: this is for a client that waits for a processor.
  static constexpr Nanos kGreetingFor = 5 * kNanosPerSecond;
  // A client that takes none of what is sent to it.
  static constexpr Nanos kStalledFor = 20 * kNanosPerSecond;
  // One that was turned away has so long to ask, hear the answer and close: some round trips. kLeavingMax of them leave at a time, so so
  // many a second hear why.
  static constexpr Nanos kLeavingFor = kNanosPerSecond;

  struct Parts {
    EventLoop* loop;
    Origins* origins;
    Refusals* refusals;
    std::string listener;  // for refusals
    Http2Bounds bounds;
    // Owns the descriptor that it is called with.
    std::function<void(int fd)> to_server;
    // Judges who has greeted, and counts whom it refuses. The client hears the message.
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
  // Ends it; who has not been let in yet hears `why` as the answer to the first call, before.
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
