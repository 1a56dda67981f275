// Is the peer's kernel there, and does anybody listen? One attempt to connect to its out-of-band address. With the peer's lock.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_PROBE_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_PROBE_H_

#include <functional>

#include "base/core/clock.h"
#include "netplugin/link/action.h"
#include "netplugin/transport/poller.h"
#include "netplugin/transport/tcp/socket.h"

namespace r2cc::net {

class Probe {
 public:
  static constexpr Nanos kPatience = 2 * kNanosPerSecond;

  Probe(Poller* poller, std::function<void(Reach)> on_result) : poller_(poller), on_result_(std::move(on_result)) {}
  ~Probe() { Stop(); }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  // Nothing happens if one is under way.
  void Start(const Source& source, const SocketAddress& to, Nanos now);
  void Tick(Nanos now);
  void Stop();

 private:
  void End(Reach reach);

  Poller* const poller_;
  const std::function<void(Reach)> on_result_;
  UniqueFd fd_;
  Poller::Token token_ = 0;
  Nanos since_ = 0;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_PROBE_H_
