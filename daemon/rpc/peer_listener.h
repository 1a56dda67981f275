// Serves the daemons' port: it accepts connections itself, looks at how each begins, and hands it on as what it is. So one port speaks TLS,
// clear text or both. A connection that begins otherwise, slowly or not at all costs one descriptor for a few seconds and is counted with
// its address.
#ifndef R2CC_DAEMON_RPC_PEER_LISTENER_H_
#define R2CC_DAEMON_RPC_PEER_LISTENER_H_

#include <functional>
#include <list>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/event_loop.h"
#include "daemon/trust/refusals.h"

namespace r2cc::daemon {

// On `loop`, which outlives it.
class PeerListener {
 public:
  // Each owns the descriptor that it is called with, on the loop's thread. Null: such connections are refused.
  struct Takers {
    std::function<void(int fd, const std::string& address)> tls;
    std::function<void(int fd, const std::string& address)> clear;
  };
  // Connections without a byte so far. Beyond that the oldest goes.
  static constexpr size_t kSilentMax = 512;
  static constexpr Nanos kSilentFor = 3 * kNanosPerSecond;

  // Listens on `listen`, host:port. `refusals` outlives it. Any thread. One line that names the address and the reason on failure.
  static absl::StatusOr<std::unique_ptr<PeerListener>> Start(EventLoop* loop, const std::string& listen, Takers takers, Refusals* refusals);
  // When it returns no taker is running, and none will be called again. Any thread but the loop's.
  ~PeerListener();
  PeerListener(const PeerListener&) = delete;
  PeerListener& operator=(const PeerListener&) = delete;

  // The one that was chosen, if `listen` left it open.
  int port() const { return port_; }

 private:
  struct Silent {
    int fd;
    std::string address;
    Nanos until;
  };
  PeerListener(EventLoop* loop, int fd, int port, Takers takers, Refusals* refusals)
      : loop_(loop), fd_(fd), port_(port), takers_(std::move(takers)), refusals_(refusals) {}
  void Watch();
  void Accept();
  void Take(int fd, std::string address);
  // It sent something, or went.
  void Look(std::list<Silent>::iterator connection);
  void Drop(std::list<Silent>::iterator connection);
  void ArmTimer();

  EventLoop* const loop_;
  const int fd_;
  const int port_;
  const Takers takers_;
  Refusals* const refusals_;
  std::list<Silent> silent_;  // the oldest first
  TimerId pause_ = 0;
  TimerId timer_ = 0;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_PEER_LISTENER_H_
