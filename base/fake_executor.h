// An Executor in simulated time: the test decides when tasks run, in an order that is the same every time. One thread.
#ifndef R2CC_BASE_FAKE_EXECUTOR_H_
#define R2CC_BASE_FAKE_EXECUTOR_H_

#include <deque>
#include <optional>
#include <utility>

#include "base/executor.h"
#include "base/timer_queue.h"

namespace r2cc {

class FakeExecutor final : public Executor {
 public:
  explicit FakeExecutor(Nanos now = kNanosPerSecond) : now_(now) {}

  void Post(Task task) override { posted_.push_back(std::move(task)); }
  TimerId RunAfter(Nanos delay, Task task) override { return timers_.Add(now_ + (delay > 0 ? delay : 0), std::move(task)); }
  bool Cancel(TimerId timer) override { return timers_.Cancel(timer); }
  Nanos Now() const override { return now_; }

  // Runs what is posted, and what that posts, until nothing is left; time does not advance.
  void RunPosted() {
    while (!posted_.empty()) {
      const Task task = std::move(posted_.front());
      posted_.pop_front();
      task();
    }
  }

  // Lets `by` pass, running every timer at its time and all that is posted.
  void Advance(Nanos by) {
    const Nanos end = now_ + by;
    RunPosted();
    while (timers_.NextDue().has_value() && *timers_.NextDue() <= end) {
      if (*timers_.NextDue() > now_) now_ = *timers_.NextDue();
      if (const Task task = timers_.TakeDue(now_)) task();
      RunPosted();
    }
    now_ = end;
  }

  // When the next timer is due; nothing if none is. Lets a simulation step from event to event.
  std::optional<Nanos> NextDue() const { return timers_.NextDue(); }

 private:
  Nanos now_;
  std::deque<Task> posted_;
  TimerQueue timers_;
};

}  // namespace r2cc

#endif  // R2CC_BASE_FAKE_EXECUTOR_H_
