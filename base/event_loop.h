// One thread, one loop: descriptors, timers and posted tasks, one after the other. A module runs on one loop and needs no lock; other
// threads reach it through Post or a mailbox (base/mailbox.h).
#ifndef R2CC_BASE_EVENT_LOOP_H_
#define R2CC_BASE_EVENT_LOOP_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "base/core/mutex.h"
#include "base/fd_executor.h"
#include "base/timer_queue.h"

namespace r2cc {

// "Loop thread" below: from a task, timer or handler of this loop, or from one thread at a time while the loop does not run.
class EventLoop final : public FdExecutor {
 public:
  EventLoop();
  // REQUIRES: Run has returned or was never called. Destroys what is still posted, unrun.
  ~EventLoop() override;
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Loop thread.
  absl::Status AddFd(int fd, uint32_t epoll_events, FdHandler handler) override;
  absl::Status ModifyFd(int fd, uint32_t epoll_events) override;
  void RemoveFd(int fd) override;

  void Post(Task task) override;
  TimerId RunAfter(Nanos delay, Task task) override;
  bool Cancel(TimerId timer) override;
  Nanos Now() const override { return clock_.Now(); }

  // Runs `task` on the loop and waits until it has; at once if called on the loop's thread. False if the loop ended without running
  // it. Thread-safe. Not for module to module talk (a mailbox is): for RPC threads that owe an answer.
  bool RunAndWait(Task task);

  // A turn of the loop: what it does from one look at its timers to the next. A turn that has lasted this long looks at them before it goes
  // on, however many tasks and descriptors wait; a single task is never interrupted.
  static constexpr Nanos kTurnMax = 5 * kNanosPerMs;
  // `turn_ended` is called when Run begins and after each turn, on its thread. Before Run.
  void ObserveTurns(std::function<void()> turn_ended) { turn_ended_ = std::move(turn_ended); }

  // Runs until Stop. Once for each loop.
  void Run();
  // Run returns after the task at hand. Also before Run. Thread-safe.
  void Stop();

  // True on the thread that is in Run.
  bool InLoopThread() const { return thread_.load() == std::this_thread::get_id(); }

 private:
  struct Watch {
    int fd;
    FdHandler handler;
  };
  void Wake();
  void RunPosted();
  void RunTimers();
  void ArmTimer();
  void BeginTurn() { turn_until_ = Now() + kTurnMax; }
  void EndTurn() {
    if (turn_ended_) turn_ended_();
  }
  bool TurnIsOver() const { return Now() >= turn_until_; }

  SteadyClock clock_;
  int epoll_fd_;
  int wake_fd_;
  int timer_fd_;
  Nanos armed_for_ = 0;  // what timer_fd_ is set to; 0: not set
  TimerQueue timers_;
  std::deque<Task> batch_;  // of those that were posted; what is left of it is for the next turn
  Nanos turn_until_ = 0;
  std::function<void()> turn_ended_;
  // By a serial number that epoll carries: an event fetched for a removed descriptor finds nothing, even if the number of the
  // descriptor was taken by a new one in between.
  std::map<uint64_t, std::shared_ptr<Watch>> watches_;
  std::map<int, uint64_t> serial_of_fd_;
  uint64_t last_serial_;

  Mutex mutex_;
  std::deque<Task> posted_ R2CC_GUARDED_BY(mutex_);
  bool ended_ R2CC_GUARDED_BY(mutex_) = false;
  std::atomic<bool> stop_{false};
  std::atomic<std::thread::id> thread_{};
};

// A thread that runs an EventLoop: named, with all signals blocked, joined in the destructor.
class ScopedLoopThread {
 public:
  // `name` is cut to the 15 characters that the kernel keeps.
  explicit ScopedLoopThread(const std::string& name);
  // Stops the loop and joins.
  ~ScopedLoopThread();
  ScopedLoopThread(const ScopedLoopThread&) = delete;
  ScopedLoopThread& operator=(const ScopedLoopThread&) = delete;

  EventLoop& loop() { return loop_; }

 private:
  EventLoop loop_;
  std::thread thread_;
};

}  // namespace r2cc

#endif  // R2CC_BASE_EVENT_LOOP_H_
