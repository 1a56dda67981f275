// Everybody who connects to one of our listeners says who he is first; strangers are refused and counted. I/O thread only.
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
  // Of so many who have not said who they are the one who has waited longest makes room for the next: an eighth of the descriptors that the
  // process may open, which leaves the job its own. A peer with 8 rails and 16 sockets per rail opens 137 connections at once.
  static constexpr size_t WaitingMax(uint64_t descriptors) {
    return static_cast<size_t>(std::clamp<uint64_t>(descriptors / 8, kWaitingLeast, kWaitingMost));
  }
  static constexpr size_t kWaitingLeast = 128, kWaitingMost = 4096;

  // `greet` judges a sound greeting: see Greet. What it refuses is answered, hung up and counted. `descriptors` hears of connections that
  // cannot be taken; it outlives this.
  TcpListener(Poller* poller, const Clock* clock, size_t waiting_max, Greet greet, DescriptorWatch* descriptors)
      : poller_(poller), clock_(clock), waiting_max_(waiting_max), greet_(std::move(greet)), descriptors_(descriptors) {}
  ~TcpListener();

  // Returns its place.
  size_t AddListener(UniqueFd listener);
  // What it has accepted stays.
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
