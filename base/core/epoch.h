// The order of views and plans.
#ifndef R2CC_BASE_CORE_EPOCH_H_
#define R2CC_BASE_CORE_EPOCH_H_

#include <cstdint>

namespace r2cc {

// One daemon's logical time. Each life of a daemon has a random number of its own, and within it a counter grows. Two lives have no order:
// no clock is asked, as clocks run backwards. Which life of a node's daemon is the current one, whoever hears them decides
// (health/view/incarnations.h).
struct Epoch {
  uint64_t incarnation = 0;  // of one life of the daemon; 0: none
  uint64_t counter = 0;      // grows by one with each published change

  // Of the same life, and later in it.
  bool LaterThan(const Epoch& other) const { return incarnation == other.incarnation && counter > other.counter; }
  friend bool operator==(const Epoch&, const Epoch&) = default;
};

}  // namespace r2cc

#endif  // R2CC_BASE_CORE_EPOCH_H_
