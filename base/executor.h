// Runs a module's code: tasks one after the other, now or later. The real one is an EventLoop (one thread, one loop); the fake
// one (base/fake_executor.h) runs in simulated time.
#ifndef R2CC_BASE_EXECUTOR_H_
#define R2CC_BASE_EXECUTOR_H_

#include <cstdint>
#include <functional>

#include "base/core/clock.h"

namespace r2cc {

using Task = std::function<void()>;

// Names a timer that was started; never reused by one executor. 0 is never a timer.
using TimerId = uint64_t;

class Executor {
 public:
  virtual ~Executor() = default;

  // Runs `task` after those posted before it; returns at once. Thread-safe. An executor that has ended destroys the task unrun.
  virtual void Post(Task task) = 0;

  // Runs `task` once, `delay` from now (0 or less: as soon as it can). From the executor's own tasks, or while it does not run.
  virtual TimerId RunAfter(Nanos delay, Task task) = 0;

  // The timer will not run. False if it has run already, or was cancelled. From where RunAfter may be called.
  virtual bool Cancel(TimerId timer) = 0;

  // The time by which timers run. Thread-safe.
  virtual Nanos Now() const = 0;

  // How long until its clock shows a multiple of `interval` again. REQUIRES: `interval` > 0. Timers that are set by this ring together, and
  // wake the loop once; waking up is most of what an idle daemon costs.
  Nanos UntilNext(Nanos interval) const { return interval - Now() % interval; }
};

}  // namespace r2cc

#endif  // R2CC_BASE_EXECUTOR_H_
