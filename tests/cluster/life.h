// One life of a daemon: what it does ends with it, and a message that comes later finds nobody.
#ifndef R2CC_TESTS_CLUSTER_LIFE_H_
#define R2CC_TESTS_CLUSTER_LIFE_H_

#include <memory>
#include <utility>

#include "base/fake_executor.h"

namespace r2cc::cluster {

// The cluster's one event queue as one daemon sees it, with the clock of that daemon's machine.
class Life final : public Executor {
 public:
  // `ahead`: of the cluster's time, as machines do not boot together. `queue` outlives it.
  Life(FakeExecutor* queue, Nanos ahead) : queue_(queue), ahead_(ahead) {}
  ~Life() override { End(); }
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  void Post(Task task) override { queue_->Post(Mine(std::move(task))); }
  TimerId RunAfter(Nanos delay, Task task) override { return queue_->RunAfter(delay, Mine(std::move(task))); }
  bool Cancel(TimerId timer) override { return queue_->Cancel(timer); }
  Nanos Now() const override { return queue_->Now() + ahead_; }

  void End() { *alive_ = false; }

 private:
  Task Mine(Task task) const {
    return [alive = alive_, task = std::move(task)] {
      if (*alive) task();
    };
  }

  FakeExecutor* const queue_;
  const Nanos ahead_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace r2cc::cluster

#endif  // R2CC_TESTS_CLUSTER_LIFE_H_
