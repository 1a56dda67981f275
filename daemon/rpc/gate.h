// Stands between a listener and gRPC: finds out who is at the other end of a connection, bounds how many there are and what each may ask
// for, and carries the bytes of those that it lets in to gRPC over a socket pair. So nobody who has not proved who he is reaches HTTP/2.
#ifndef R2CC_DAEMON_RPC_GATE_H_
#define R2CC_DAEMON_RPC_GATE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/event_loop.h"
#include "daemon/rpc/client_end.h"
#include "daemon/rpc/http2_meter.h"
#include "daemon/rpc/origins.h"
#include "daemon/trust/refusals.h"

namespace r2cc::daemon {

// On `loop`'s thread.
class Gate {
 public:
  // Connections that have not proved who they are. Beyond that the oldest goes.
  static constexpr size_t kGreetingsMax = 512;
  static constexpr size_t kGreetingsPerAddressMax = 64;
  static constexpr Nanos kGreetingFor = 5 * kNanosPerSecond;
  // Those that were turned away and are still to hear why. Beyond that one hears nothing.
  static constexpr size_t kLeavingMax = 256;
  // A client that takes none of what is sent to it.
  static constexpr Nanos kStalledFor = 20 * kNanosPerSecond;
  // How often those that were let in are judged again.
  static constexpr Nanos kJudgeInterval = 60 * kNanosPerSecond;

  // One that is let in: conversations of one `share` (a node, a user, an address) are counted together, and so are those of one `group`.
  struct Admission {
    std::string share;
    size_t share_max = 0;
    std::string group;
    size_t group_max = 0;
    int streams_per_second = 0;  // that a share opens
    int streams_burst = 0;
  };
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
  struct Share {
    Share(int per_second, int burst) : streams(per_second, burst) {}
    TokenBucket streams;
    size_t conversations = 0;
    Nanos used = 0;
  };
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
  void Release(Relay* relay);
  void ArmSweep(Nanos delay);
  void Sweep();

  const Parts parts_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for tasks that are posted
  std::map<uint64_t, std::unique_ptr<Relay>> relays_;                 // the oldest first
  std::map<std::string, std::unique_ptr<Share>> shares_;
  std::map<std::string, size_t> groups_;
  std::map<std::string, size_t> greetings_;  // by address
  size_t greetings_count_ = 0;
  size_t leaving_count_ = 0;
  uint64_t last_id_ = 0;
  TimerId sweep_ = 0;
  Nanos sweep_at_ = 0;
  Nanos judged_ = 0;
  size_t ended_ = 0;  // since memory was given back
  Nanos trimmed_ = 0;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_GATE_H_
