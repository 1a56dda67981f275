// Virtual time and chance: events happen in the order of their time, then in the order in which they were asked for, and every
// decision comes from one generator, so that a seed replays a run exactly.
#ifndef R2CC_TESTS_SIM_TIMELINE_H_
#define R2CC_TESTS_SIM_TIMELINE_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "base/core/clock.h"

namespace r2cc::sim {

class Random {
 public:
  explicit Random(uint64_t seed) : generator_(seed) {}
  uint64_t Next() { return generator_(); }
  // 0 to count - 1.
  int Pick(int count) { return static_cast<int>(Next() % static_cast<uint64_t>(count)); }
  bool Chance(int one_in) { return Pick(one_in) == 0; }
  // Both ends included.
  int64_t Between(int64_t least, int64_t most) { return least + static_cast<int64_t>(Next() % static_cast<uint64_t>(most - least + 1)); }
  template <typename T>
  const T& Of(const std::vector<T>& choices) {
    return choices[static_cast<size_t>(Pick(static_cast<int>(choices.size())))];
  }

 private:
  std::mt19937_64 generator_;
};

class Timeline {
 public:
  explicit Timeline(uint64_t seed) : random_(seed) {}
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  Nanos now() const { return now_; }
  Random& random() { return random_; }

  void At(Nanos when, std::function<void()> what);
  void After(Nanos delay, std::function<void()> what) { At(now_ + delay, std::move(what)); }

  // Nothing happens any more: for the end of a world, before that of what its events hold.
  void Clear() { events_.clear(); }
  // Runs the earliest event; time is then its time. False if there is none.
  bool RunNext();
  // Runs all events until then.
  void RunUntil(Nanos when) {
    while (next() <= when) RunNext();
    now_ = std::max(now_, when);
  }
  // When the earliest event is due; a time beyond all others if there is none.
  Nanos next() const;

 private:
  struct Event {
    Nanos when;
    uint64_t order;
    std::function<void()> what;
  };
  static bool Later(const Event& a, const Event& b) { return a.when != b.when ? a.when > b.when : a.order > b.order; }

  Random random_;
  Nanos now_ = kNanosPerSecond;
  uint64_t order_ = 0;
  std::vector<Event> events_;  // a heap, the earliest first
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_TIMELINE_H_
