// Wraps epoll with handlers. One thread.
#ifndef R2CC_NETPLUGIN_TRANSPORT_OS_POLLER_H_
#define R2CC_NETPLUGIN_TRANSPORT_OS_POLLER_H_

#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "base/core/unique_fd.h"

namespace r2cc::net {

class Poller {
 public:
  using Handler = std::function<void(uint32_t events)>;
  using Token = uint64_t;  // 0: none

  Poller();

  // False if the kernel gave no epoll descriptor.
  bool ok() const { return static_cast<bool>(epoll_); }
  // Readable while an event waits to be handled: for a poller inside a poller.
  int fd() const { return epoll_.get(); }

  Token Add(int fd, uint32_t events, Handler handler);
  void Modify(Token token, int fd, uint32_t events);
  // Call before the descriptor is closed. The handler is not called again, not even for events of the current round.
  void Remove(Token token, int fd);

  // Waits at most `timeout_ms`, then calls handlers. True if everything that was ready has been handled, so that silence is real.
  bool Wait(int timeout_ms);

 private:
  UniqueFd epoll_;
  Token next_token_ = 1;
  std::unordered_map<Token, std::shared_ptr<Handler>> handlers_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_OS_POLLER_H_
