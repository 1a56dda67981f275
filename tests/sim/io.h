// What the parts of one simulated process share: its options, its readiness loop, its place in the network.
#ifndef R2CC_TESTS_SIM_IO_H_
#define R2CC_TESTS_SIM_IO_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "netplugin/flow/stripe.h"
#include "netplugin/link/wire.h"
#include "tests/sim/network.h"
#include "tests/sim/tap.h"

namespace r2cc::sim {

struct ProcessOptions {
  int rails = 1;
  uint8_t sockets_per_rail = 1;
  uint32_t chunk_bytes = 4096;
  uint32_t eager_bytes = 0;
  Nanos silence = 250 * kNanosPerMs;
  Nanos deadline = 30 * kNanosPerSecond;
  net::StripeMode mode = net::StripeMode::kBalance;
  Nanos turn_latency_most = 20'000;  // from an event to the moment when the I/O thread looks at it
  size_t turn_bytes = 16 * 1024;     // read from one socket before the others get their turn
};

class Io {
 public:
  Io(Network* network, Tap* tap, int host, const ProcessOptions& options)
      : network(network), tap(tap), host(host), options(options), rail_up(static_cast<size_t>(options.rails), true) {}
  Io(const Io&) = delete;
  Io& operator=(const Io&) = delete;

  Network* const network;
  Tap* const tap;
  const int host;
  const ProcessOptions options;
  std::vector<bool> rail_up;  // as the process's link monitor says
  std::function<net::RailVerdict(int host, int rail)> verdict = [](int, int) { return net::RailVerdict{}; };  // the page
  std::function<bool(int rail, int peer, int peer_rail)> path_broken = [](int, int, int) { return false; };
  std::function<void()> wake;  // asks for a turn of the process

  // What a greeting says of the rails.
  std::vector<net::RailInfo> Rails() const {
    std::vector<net::RailInfo> rails(rail_up.size());
    for (size_t i = 0; i < rails.size(); ++i) rails[i].up = rail_up[i];
    return rails;
  }

  Nanos now() const { return network->timeline()->now(); }
  Random& random() const { return network->timeline()->random(); }
  bool logs() const { return tap->logs(); }
  void Log(const std::string& line) const { tap->Log(host, line); }

  using Token = uint64_t;
  // `handler` runs in a turn of the process, now and whenever something happened to the socket.
  Token Watch(const std::shared_ptr<Socket>& socket, std::function<void()> handler) {
    const Token token = next_++;
    handlers_[token] = std::make_shared<std::function<void()>>(std::move(handler));
    socket->on_ready = [this, token] { Ready(token); };
    Ready(token);
    return token;
  }
  void Unwatch(Token token, Socket* socket) {
    handlers_.erase(token);
    ready_.erase(token);
    socket->on_ready = nullptr;
  }
  void RunReady() {
    for (const Token token : std::exchange(ready_, {})) {
      const auto it = handlers_.find(token);
      if (it == handlers_.end()) continue;
      const auto handler = it->second;
      (*handler)();
    }
  }

 private:
  void Ready(Token token) {
    ready_.insert(token);
    wake();
  }

  Token next_ = 1;
  std::map<Token, std::shared_ptr<std::function<void()>>> handlers_;
  std::set<Token> ready_;
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_IO_H_
