// Handlers of sockets, and those that have something to do.
#ifndef R2CC_TESTS_SIM_READY_SET_H_
#define R2CC_TESTS_SIM_READY_SET_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "tests/sim/network.h"

namespace r2cc::sim {

class ReadySet {
 public:
  using Token = uint64_t;  // 0: none

  // `wake` asks for a turn of the process.
  explicit ReadySet(std::function<void()> wake) : wake_(std::move(wake)) {}
  ReadySet(const ReadySet&) = delete;
  ReadySet& operator=(const ReadySet&) = delete;

  // `handler` runs with Run(), now and whenever something happened to the socket.
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
  void Ready(Token token) {
    ready_.insert(token);
    wake_();
  }
  void Run() {
    for (const Token token : std::exchange(ready_, {})) {
      const auto it = handlers_.find(token);
      if (it == handlers_.end()) continue;
      const auto handler = it->second;
      (*handler)();
    }
  }

 private:
  const std::function<void()> wake_;
  Token next_ = 1;
  std::map<Token, std::shared_ptr<std::function<void()>>> handlers_;
  std::set<Token> ready_;
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_READY_SET_H_
