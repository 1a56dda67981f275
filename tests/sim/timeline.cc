#include "tests/sim/timeline.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "tests/sim/charge.h"

namespace r2cc::sim {

void Timeline::At(Nanos when, std::function<void()> what) {
  const Charge charge(Account::kSimulation);
  events_.push_back({std::max(when, now_), order_++, std::move(what)});
  std::push_heap(events_.begin(), events_.end(), Later);
}

bool Timeline::RunNext() {
  if (events_.empty()) return false;
  std::pop_heap(events_.begin(), events_.end(), Later);
  Event event = std::move(events_.back());
  events_.pop_back();
  now_ = event.when;
  event.what();
  return true;
}

Nanos Timeline::next() const { return events_.empty() ? std::numeric_limits<Nanos>::max() : events_.front().when; }

}  // namespace r2cc::sim
