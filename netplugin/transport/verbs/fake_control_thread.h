// Fakes a control thread in virtual time. A step lasts as long as FaultyVerbs reports for its calls; until then no other step runs.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_FAKE_CONTROL_THREAD_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_FAKE_CONTROL_THREAD_H_

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "netplugin/transport/verbs/control_thread.h"
#include "netplugin/transport/verbs/fake_types.h"

namespace r2cc::net::verbs {

class FakeControlThread final : public ControlThread {
 public:
  // From a job's submission, and from one step to the next.
  static constexpr Nanos kWakeTakes = 10'000;

  // While its process is stopped, it checks again after this time.
  static constexpr Nanos kLooksAgain = 20 * kNanosPerMs;

  // `takes`: how long the calls of the last step took. `running`: the process is not stopped.
  explicit FakeControlThread(
      FakeTime* time, std::function<Nanos()> takes = [] { return Nanos{0}; }, std::function<bool()> running = [] { return true; })
      : time_(time), takes_(std::move(takes)), running_(std::move(running)) {}
  ~FakeControlThread() override { Stop(); }

  void Stop() override {
    *alive_ = false;
    const JobQueue dropped = std::exchange(jobs_, {});
  }
  void Submit(JobKind kind, ControlJob job) override {
    if (!*alive_) return;
    jobs_.Add(kind, time_->now(), std::move(job));
    Plan(time_->now() + kWakeTakes);
  }
  bool idle() const { return jobs_.empty(); }

 private:
  void Plan(Nanos when) {
    time_->At(std::max(when, busy_until_), [this, alive = alive_] {
      if (*alive) RunOne();
    });
  }
  void RunOne() {
    if (time_->now() < busy_until_) return Plan(busy_until_);
    if (!running_()) return Plan(time_->now() + kLooksAgain);
    auto next = jobs_.Take(time_->now());
    if (!next) return;
    const auto again = next->second(time_->now());
    busy_until_ = time_->now() + takes_();
    if (again) jobs_.Add(next->first, busy_until_ + *again, std::move(next->second));
    if (const auto due = jobs_.next()) Plan(std::max(*due, time_->now() + kWakeTakes));
  }

  FakeTime* const time_;
  const std::function<Nanos()> takes_;
  const std::function<bool()> running_;
  JobQueue jobs_;
  Nanos busy_until_ = 0;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_FAKE_CONTROL_THREAD_H_
