// The order of views and plans.
#ifndef R2CC_BASE_CORE_EPOCH_H_
#define R2CC_BASE_CORE_EPOCH_H_

#include <cstdint>

namespace r2cc {

// One daemon's logical time. Each run of a daemon has a random number of its own, and within it a counter grows. Two runs have no order:
// no clock is used, because clocks run backwards. Each receiver decides which run of a node's daemon is the current one
// (health/view/incarnations.h).
struct Epoch {
  uint64_t incarnation = 0;  // of one run of the daemon; 0: none
  uint64_t counter = 0;      // grows by one with each published change

  // From the same run, and later in it.
  bool LaterThan(const Epoch& other) const { return incarnation == other.incarnation && counter > other.counter; }
  friend bool operator==(const Epoch&, const Epoch&) = default;
};

}  // namespace r2cc

#endif  // R2CC_BASE_CORE_EPOCH_H_
