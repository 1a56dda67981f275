// Moves one bulk socket by a worker (see transport/workers.h). Payload is copied without the peer's lock, so that several threads can copy
// for one peer at a time and the copy keeps no thread from the lock. A worker takes the lock to learn what to send, or where bytes go; it
// releases the lock for one call; then it retakes the lock to report the result.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_IO_TASK_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_IO_TASK_H_

#include <atomic>
#include <memory>

#include "netplugin/transport/links.h"
#include "netplugin/transport/os/workers.h"

namespace r2cc::net {

class IoTask : public Workers::Task {
 public:
  explicit IoTask(LinkOwner* owner) : owner_(owner), keep_alive_(owner->KeepAlive()) {}

  void Run() final;

 protected:
  // With the lock. False: there is nothing to do, or the task does not own the socket any more.
  virtual bool Prepare() = 0;
  // Without the lock: one call on the socket, which does not block. Until it has ended, the worker owns the socket and the memory that it
  // touches.
  virtual void Call() = 0;
  // With the lock: reports the result of the call. False: enough.
  virtual bool Commit() = 0;
  // With the lock: the link is about to be destroyed.
  virtual void Detach() = 0;

 private:
  friend class SocketOwnership;
  // With the lock: waits until no call is being made. Calls are short. The result of the last one may not be reported yet.
  void Await() const { calling_.wait(true, std::memory_order_acquire); }
  // With the lock, when no call is being made: reports the result of the last one, unless that was done.
  bool Finish();
  bool calling() const { return calling_.load(std::memory_order_acquire); }

  LinkOwner* const owner_;
  const std::shared_ptr<void> keep_alive_;
  std::atomic<bool> calling_{false};
  bool unreported_ = false;  // with the lock
};

// Tracks which thread owns a bulk socket: the holder of the lock, or a worker. With the lock.
class SocketOwnership {
 public:
  bool by_worker() const { return task_ != nullptr; }
  bool is(const IoTask* task) const { return task_.get() == task; }
  // A call is being made: no part of the socket may be touched until it has ended.
  bool calling() const { return by_worker() && task_->calling(); }
  // The worker was woken, or polls for more, and has not come yet.
  bool pending() const { return by_worker() && pending_; }
  void set_pending(bool pending) { pending_ = pending; }
  void Await() const {
    if (by_worker()) task_->Await();
  }

  // The socket goes to the worker of `place`: see Workers::Add().
  void HandOver(Workers* workers, Workers::Way way, size_t place, int fd, std::shared_ptr<IoTask> task);
  void Wake(Workers* workers) {
    pending_ = true;
    workers->Wake(token_);
  }
  // For a socket that ends. When it returns no call is being made, and none will be. Does nothing if no worker owns the socket.
  void End(Workers* workers, int fd);

 private:
  std::shared_ptr<IoTask> task_;
  Workers::Token token_ = 0;
  bool pending_ = false;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_IO_TASK_H_
