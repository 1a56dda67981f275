// Runs threads that move bulk in addition to NCCL's own, where there are enough processors: one thread copies less than a few rails carry.
//
// A task belongs to one socket and stays with one thread, so it never runs twice at a time. It runs when the socket becomes ready
// (edge-triggered) and when it is woken. A thread that found work polls for more for a while before it sleeps.
#ifndef R2CC_NETPLUGIN_TRANSPORT_OS_WORKERS_H_
#define R2CC_NETPLUGIN_TRANSPORT_OS_WORKERS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "base/core/clock.h"
#include "base/core/mutex.h"
#include "base/core/unique_fd.h"

namespace r2cc::net {

class Workers {
 public:
  class Task {
   public:
    virtual ~Task() = default;
    virtual void Run() = 0;
  };
  using Token = uint64_t;  // 0: none
  // Sending and receiving have separate threads if there are two: arrived data is read soon, whatever a sender does. Otherwise the peer's
  // senders would find their windows closed.
  enum class Way { kSend, kReceive };

  // The threads inherit the caller's signal mask and processors; `name` has at most 15 characters. A thread that found work stays awake for
  // `awake_for`. On failure, if there are no descriptors for them, null and one line in `error`.
  static std::unique_ptr<Workers> Start(int threads, Nanos awake_for, std::string* error, const char* name = "r2cc-bulk");
  // Waits for tasks that run. No task may wait for the caller.
  ~Workers();

  // ---- any thread, including tasks; no call here waits for a task ----

  // The task sends, or receives, on this socket. Tasks with the same `place` share a thread. The descriptor must stay open until Remove().
  // -1: the task has none, and runs only when it is woken.
  Token Add(Way way, size_t place, int fd, std::shared_ptr<Task> task);
  // The task runs soon, once for all calls until then.
  void Wake(Token token);
  // The task may be running, and then ends normally; it is not run again.
  void Remove(Token token, int fd);

 private:
  struct Entry {
    std::shared_ptr<Task> task;
    bool woken = false;
  };
  struct Worker {
    UniqueFd epoll;
    UniqueFd wake;
    std::thread thread;
    Mutex mutex;
    std::map<Token, Entry> entries R2CC_GUARDED_BY(mutex);
    std::vector<Token> woken R2CC_GUARDED_BY(mutex);
    bool asleep R2CC_GUARDED_BY(mutex) = false;  // about to wait, or waiting: a call must wake it
  };
  explicit Workers(Nanos awake_for) : awake_for_(awake_for) {}
  Worker& Of(Token token) { return *workers_[token % workers_.size()]; }
  void Run(Worker* worker, const char* name);
  // Null: removed meanwhile.
  static std::shared_ptr<Task> Find(Worker* worker, Token token);

  const Nanos awake_for_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::atomic<uint64_t> serial_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_OS_WORKERS_H_
