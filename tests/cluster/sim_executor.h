// Runs the tasks of one run of a daemon. Its tasks end with it, and a message that comes later is dropped.
#ifndef R2CC_TESTS_CLUSTER_SIM_EXECUTOR_H_
#define R2CC_TESTS_CLUSTER_SIM_EXECUTOR_H_

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/fd_executor.h"
#include "tests/sim/machine_clock.h"
#include "tests/sim/timeline.h"

namespace r2cc::cluster {

// The cluster's one timeline as one daemon sees it, with the clock of that daemon's machine.
class SimExecutor final : public FdExecutor {
 public:
  // `timeline` outlives it.
  SimExecutor(sim::Timeline* timeline, const sim::MachineClock& clock) : timeline_(timeline), clock_(clock) {}
  ~SimExecutor() override { End(); }
  SimExecutor(const SimExecutor&) = delete;
  SimExecutor& operator=(const SimExecutor&) = delete;

  void Post(Task task) override { RunAfter(0, std::move(task)); }
  TimerId RunAfter(Nanos delay, Task task) override;
  bool Cancel(TimerId timer) override { return state_->tasks.erase(timer) > 0; }
  Nanos Now() const override { return clock_.At(timeline_->now()); }
  absl::Status AddFd(int fd, uint32_t epoll_events, FdHandler handler) override;
  absl::Status ModifyFd(int fd, uint32_t epoll_events) override;
  void RemoveFd(int fd) override { watches_.erase(fd); }

  // Somebody may have written to one of the descriptors: a turn later they are looked at.
  void LookSoon();
  // SIGSTOP and SIGCONT: what is due meanwhile is done afterwards, in the same order.
  void Stop() { state_->stopped = true; }
  void Continue();
  bool stopped() const { return state_->stopped; }
  void End() { state_->tasks.clear(); }

 private:
  struct State {
    std::unordered_map<TimerId, Task> tasks;
    std::vector<TimerId> held;  // due while it was stopped
    bool stopped = false;

    void Run(TimerId id);
  };
  struct Watch {
    uint32_t events = 0;
    std::shared_ptr<FdHandler> handler;
  };
  void Look();

  sim::Timeline* const timeline_;
  const sim::MachineClock clock_;
  TimerId last_id_ = 0;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
  std::map<int, Watch> watches_;
  bool look_planned_ = false;
};

}  // namespace r2cc::cluster

#endif  // R2CC_TESTS_CLUSTER_SIM_EXECUTOR_H_
