// The order of views and plans.
#ifndef R2CC_BASE_CORE_EPOCH_H_
#define R2CC_BASE_CORE_EPOCH_H_

#include <compare>
#include <cstdint>

namespace r2cc {

// One daemon's logical time: (boot, start of the daemon, counter). A restarted daemon's epochs are later than the ones of its
// former life, and a rebooted node's later than the ones before the boot. Epochs of different nodes are not comparable.
struct Epoch {
  int64_t boot_time_s = 0;      // CLOCK_REALTIME at which the machine booted, rounded to seconds
  int64_t daemon_start_ns = 0;  // CLOCK_BOOTTIME at which the daemon started
  uint64_t counter = 0;         // grows by one with each published change

  friend auto operator<=>(const Epoch&, const Epoch&) = default;
};

}  // namespace r2cc

#endif  // R2CC_BASE_CORE_EPOCH_H_
