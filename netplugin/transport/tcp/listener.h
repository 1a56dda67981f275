// Accepts connections and reads their greetings. Connections without a valid greeting are refused and counted. I/O thread only.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_LISTENER_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_LISTENER_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/core/clock.h"
#include "netplugin/transport/links.h"
#include "netplugin/transport/os/poller.h"
#include "netplugin/transport/tcp/descriptors.h"
#include "netplugin/transport/tcp/packet_stream.h"

namespace r2cc::net {

class TcpListener {
 public:
  // How many connections may wait with their greeting unread: an eighth of the descriptors that the process may open, which leaves enough
  // for the job. Beyond that the one that has waited longest makes room for the next. A peer with 8 rails and 16 sockets per rail opens 137
  // connections at once.
  static constexpr size_t WaitingMax(uint64_t descriptors) {
    return static_cast<size_t>(std::clamp<uint64_t>(descriptors / 8, kWaitingLeast, kWaitingMost));
  }
  static constexpr size_t kWaitingLeast = 128, kWaitingMost = 4096;

  // `greet` judges a valid greeting: see Greet. A refused connection gets its answer, is closed and counted. `descriptors` is notified of
  // connections that cannot be accepted; it outlives this.
  TcpListener(Poller* poller, const Clock* clock, size_t waiting_max, Greet greet, DescriptorWatch* descriptors)
      : poller_(poller), clock_(clock), waiting_max_(waiting_max), greet_(std::move(greet)), descriptors_(descriptors) {}
  ~TcpListener();

  // Returns the listener's handle.
  size_t AddListener(UniqueFd listener);
  // Keeps the connections that it has accepted.
  void CloseListener(size_t place);
  void Tick(Nanos now);

  uint64_t refused() const { return refused_; }

 private:
  struct Waiting {
    std::unique_ptr<PacketStream> stream;
    Poller::Token token = 0;
    Nanos since = 0;
  };
  struct Listening {
    UniqueFd fd;
    Poller::Token token = 0;
    bool paused = false;  // the process has no descriptor left: not before the next tick
  };

  void AcceptAll(size_t listener);
  void Readable(uint64_t id);
  void MakeRoom();
  void Drop(uint64_t id);

  Poller* const poller_;
  const Clock* const clock_;
  const size_t waiting_max_;
  const Greet greet_;
  DescriptorWatch* const descriptors_;
  std::vector<Listening> listeners_;
  std::map<uint64_t, Waiting> waiting_;
  uint64_t next_id_ = 1;
  uint64_t refused_ = 0;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_LISTENER_H_
