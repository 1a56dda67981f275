// Virtual time for the fake fabric: events happen in the order of their time, then in the order in which they were asked for, and every
// decision comes from one generator. For tests; a simulation that has a time of its own implements FakeTime over it. One thread.
#ifndef R2CC_BASE_CORE_VERBS_FAKE_TIME_H_
#define R2CC_BASE_CORE_VERBS_FAKE_TIME_H_

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <utility>

#include "base/core/clock.h"

namespace r2cc::verbs {

class FakeTime {
 public:
  virtual ~FakeTime() = default;
  virtual Nanos now() const = 0;
  virtual void At(Nanos when, std::function<void()> what) = 0;
  virtual uint64_t Random() = 0;

  void After(Nanos delay, std::function<void()> what) { At(now() + delay, std::move(what)); }
  // 0 to bound - 1.
  uint64_t Below(uint64_t bound) { return Random() % bound; }
};

class FakeTimeline final : public FakeTime {
 public:
  explicit FakeTimeline(uint64_t seed = 1) : random_(seed) {}

  Nanos now() const override { return now_; }
  void At(Nanos when, std::function<void()> what) override { events_.emplace(std::pair(when, order_++), std::move(what)); }
  uint64_t Random() override { return random_(); }

  // False if nothing is to happen any more.
  bool RunNext() {
    if (events_.empty()) return false;
    auto event = events_.extract(events_.begin());
    now_ = event.key().first;
    event.mapped()();
    return true;
  }
  void RunFor(Nanos time) {
    const Nanos end = now_ + time;
    while (!events_.empty() && events_.begin()->first.first <= end) RunNext();
    now_ = end;
  }

 private:
  Nanos now_ = kNanosPerSecond;
  uint64_t order_ = 0;
  std::map<std::pair<Nanos, uint64_t>, std::function<void()>> events_;
  std::mt19937_64 random_;
};

}  // namespace r2cc::verbs

#endif  // R2CC_BASE_CORE_VERBS_FAKE_TIME_H_
