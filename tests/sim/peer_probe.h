// Is anybody at the peer's out-of-band address? The counterpart of netplugin/transport/tcp's Probe.
#ifndef R2CC_TESTS_SIM_PEER_PROBE_H_
#define R2CC_TESTS_SIM_PEER_PROBE_H_

#include <functional>
#include <memory>
#include <utility>

#include "netplugin/link/action.h"
#include "tests/sim/io.h"

namespace r2cc::sim {

class PeerProbe {
 public:
  PeerProbe(Io* io, int peer, std::function<void(net::Reach)> on_result) : io_(io), peer_(peer), on_result_(std::move(on_result)) {}

  void Start() {
    if (socket_ != nullptr) return;
    since_ = io_->now();
    socket_ = io_->network->Connect({io_->host, kOobRail}, {peer_, kOobRail}, false);
    token_ = io_->Watch(socket_, [this] {
      if (!socket_->connected() && !socket_->broken()) return;
      End(socket_->connected() ? net::Reach::kAnswers : socket_->refused() ? net::Reach::kRefused : net::Reach::kSilent);
    });
  }
  void Tick() {
    if (socket_ != nullptr && io_->now() - since_ >= kPatience) End(net::Reach::kSilent);
  }
  void Stop() {
    if (socket_ == nullptr) return;
    io_->Unwatch(token_, socket_.get());
    std::exchange(socket_, nullptr)->Close();
  }

 private:
  static constexpr Nanos kPatience = 2 * kNanosPerSecond;

  void End(net::Reach reach) {
    Stop();
    on_result_(reach);
  }

  Io* const io_;
  const int peer_;
  const std::function<void(net::Reach)> on_result_;
  std::shared_ptr<Socket> socket_;
  Io::Token token_ = 0;
  Nanos since_ = 0;
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_PEER_PROBE_H_
