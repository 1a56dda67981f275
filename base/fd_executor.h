// An Executor that also waits for descriptors. The real one is EventLoop; in a simulation the owner of the virtual time looks at them.
#ifndef R2CC_BASE_FD_EXECUTOR_H_
#define R2CC_BASE_FD_EXECUTOR_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "base/executor.h"

namespace r2cc {

// All calls: from the executor's own tasks and handlers, or while it does not run.
class FdExecutor : public Executor {
 public:
  using FdHandler = std::function<void(uint32_t epoll_events)>;

  // Calls `handler` whenever one of `epoll_events` (EPOLLIN, EPOLLOUT, ...; level-triggered) is there. The descriptor stays the
  // caller's, who removes it before closing it.
  virtual absl::Status AddFd(int fd, uint32_t epoll_events, FdHandler handler) = 0;
  // Other events for a descriptor that was added.
  virtual absl::Status ModifyFd(int fd, uint32_t epoll_events) = 0;
  // The handler is not called any more, not even for an event that has been fetched already; it may remove itself. No effect if the
  // descriptor was not added.
  virtual void RemoveFd(int fd) = 0;
};

}  // namespace r2cc

#endif  // R2CC_BASE_FD_EXECUTOR_H_
