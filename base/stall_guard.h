// Notices an event loop that does not turn: a task that blocks, a processor that is not given, a thread that hangs. It can only report;
// what must not wait for a loop (the page's readers, other nodes) has a clock of its own.
#ifndef R2CC_BASE_STALL_GUARD_H_
#define R2CC_BASE_STALL_GUARD_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/core/mutex.h"
#include "base/executor.h"

namespace r2cc {

// How often each loop is asked.
constexpr Nanos kStallAskInterval = kNanosPerSecond;

// Everything on the guard's own executor, which runs on a thread of its own.
class StallGuard {
 public:
  struct Watched {
    std::string name;
    Executor* loop;
    Nanos stall_max;  // it is reported from here on
  };
  // `stalled`: still going on, or over; `lasted`: until now.
  using Report = std::function<void(const std::string& name, bool stalled, Nanos lasted)>;

  // All outlive the guard, which is made and destroyed on its executor or while that does not run. A watched loop that stalls longer than
  // the guard exists may outlive the guard's own executor.
  StallGuard(Executor* own, std::vector<Watched> watched, Report report)
      : own_(own), report_(std::move(report)), door_(std::make_shared<Door>(own)) {
    for (Watched& one : watched) loops_.push_back({std::move(one)});
    Ask();
  }
  ~StallGuard() {
    door_->Close();
    *alive_ = false;
    own_->Cancel(timer_);
  }
  StallGuard(const StallGuard&) = delete;
  StallGuard& operator=(const StallGuard&) = delete;

 private:
  // Posts to the guard's executor, as long as the guard exists. Thread-safe.
  class Door {
   public:
    explicit Door(Executor* executor) : executor_(executor) {}
    void Post(Task task) {
      const MutexLock lock(mutex_);
      if (executor_ != nullptr) executor_->Post(std::move(task));
    }
    void Close() {
      const MutexLock lock(mutex_);
      executor_ = nullptr;
    }

   private:
    Mutex mutex_;
    Executor* executor_ R2CC_GUARDED_BY(mutex_);
  };

  struct Loop {
    Watched watched;
    Nanos asked = 0;  // 0: it has answered
    bool reported = false;
  };

  void Ask() {
    timer_ = own_->RunAfter(own_->UntilNext(kStallAskInterval), [this] { Ask(); });
    const Nanos now = own_->Now();
    for (size_t i = 0; i < loops_.size(); ++i) {
      Loop& loop = loops_[i];
      if (loop.asked == 0) {
        loop.asked = now;
        // The answer goes to the guard's executor. The guard may be gone by then, and its executor too.
        loop.watched.loop->Post([this, i, door = door_, alive = alive_] {
          door->Post([this, i, alive] {
            if (*alive) OnAnswer(&loops_[i]);
          });
        });
      } else if (!loop.reported && now - loop.asked >= loop.watched.stall_max) {
        loop.reported = true;
        report_(loop.watched.name, true, now - loop.asked);
      }
    }
  }

  void OnAnswer(Loop* loop) {
    const Nanos lasted = own_->Now() - std::exchange(loop->asked, 0);
    if (std::exchange(loop->reported, false)) report_(loop->watched.name, false, lasted);
  }

  Executor* const own_;
  const Report report_;
  const std::shared_ptr<Door> door_;
  std::vector<Loop> loops_;
  TimerId timer_ = 0;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace r2cc

#endif  // R2CC_BASE_STALL_GUARD_H_
