// The end of a queue pair in such a way that nothing is placed through it any more: the acceptor's fence. See "The fence" in fence.cc for
// the table of its steps. In the device's control thread; each step makes one call that may block.
//
// What was measured on soft-RoCE: the error state alone lets bytes through late, and so does RESET there (1 of 60 to 5 of 200 rounds on
// two processors); a receive that was posted and comes back flushed is made by the same engine that places, after what it was busy with:
// 0 of 350 rounds. mlx5's destroy may return 0 although its RESET failed, so it proves nothing alone.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_FENCE_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_FENCE_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "base/core/clock.h"
#include "base/core/verbs/verbs.h"

namespace r2cc::net::verbs {

// How long the newest receive may take to come back flushed. Measured: mean 2.5 to 9 ms, worst 188 ms on a busy emulated machine with one
// processor; a device of silicon takes microseconds. What takes longer proves nothing, and the second line decides.
constexpr Nanos kDrainMost = 50 * kNanosPerMs;
// Between two looks at the completion queue.
constexpr Nanos kDrainEvery = 200'000;
// Between two attempts of a fence that could not be proved: its buffers wait.
constexpr Nanos kFenceAgainAfter = kNanosPerSecond;

enum class FenceStep : uint8_t {
  kError,  // to the error state
  kDrain,  // the newest posted receive comes back flushed
  kReset,  // where the driver's RESET waits for what is being placed
  kDestroy,
  kSecondLine,  // the regions that it could write are deregistered
  kDone,
};
enum class FenceEvent : uint8_t {
  kOk,
  kFailed,  // the call failed, or the step took too long: the step proves nothing
  kGone,    // the device is gone
};
// The table. `sound`: nothing has failed until now.
struct FenceNext {
  FenceStep step = FenceStep::kDone;
  bool sound = true;
};
FenceNext Next(FenceStep step, FenceEvent event, bool sound, bool reset_waits);

class Fence {
 public:
  struct Target {
    QueuePairId queue_pair{};
    CompletionQueueId completions{};  // of this queue pair alone
    uint64_t newest_receive = 0;      // its wr_id; the newest that is posted
    bool has_receive = true;
    bool reset_waits = true;  // see ResetWaits() in device.h
  };
  enum class Result {
    kRunning,
    kProved,    // nothing is placed through it any more
    kGone,      // the same by absence: the device is gone. An assumption.
    kUnproved,  // told once; it goes on trying
  };

  // `before_destroy` makes the successor, so that its number is another. `second_line` deregisters what the queue pair could write and
  // returns 0, or an errno; 0 too if that is nothing. Null: there is no second line.
  Fence(Verbs* verbs, const Target& target, std::function<void()> before_destroy, std::function<int()> second_line);

  // The next call. Nothing: it is over. Else call again after so long.
  std::optional<Nanos> Step(Nanos now);
  // As it is now. kUnproved may still become kProved or kGone.
  Result result() const { return result_; }
  FenceStep step() const { return step_; }
  // The queue pair is destroyed.
  bool destroyed() const { return destroyed_; }

 private:
  FenceEvent Do(Nanos now);
  FenceEvent Drain(Nanos now);

  Verbs* const verbs_;
  const Target target_;
  const std::function<void()> before_destroy_;
  const std::function<int()> second_line_;
  FenceStep step_ = FenceStep::kError;
  bool sound_ = true;
  bool destroyed_ = false;
  bool successor_made_ = false;
  bool flushed_ = false;
  bool waits_ = false;  // the drain goes on
  Nanos drain_until_ = 0;
  Result result_ = Result::kRunning;
};

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_FENCE_H_
