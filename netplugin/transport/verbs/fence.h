// Ends a queue pair so that nothing is placed through it any more: the acceptor's fence. "The fence" in fence.cc has the table of its
// steps. Runs in the device's control thread. Each step makes calls that may block.
//
// An error code of a call proves nothing: mlx5 answers EIO for half a dozen states of a live device. Success proves nothing on a device in
// an internal error: it answers success and does nothing. So a device counts as gone only if it has reported that and answers no query
// (Device::IsGone()), and a second line counts only if the device answers queries after it.
//
// The drain waits for a receive of the fence's own. It is posted behind all others, so it exists however many the peer has used up.
// Measured on soft-RoCE: the error state alone lets late bytes through, and so does RESET there (1 of 60 to 5 of 200 rounds on two
// processors). A receive that comes back flushed is made by the same engine that places, after its current work: 0 of 350 rounds. mlx5's
// destroy may return 0 although its RESET failed, so it proves nothing alone.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_FENCE_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_FENCE_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "base/core/clock.h"
#include "netplugin/transport/verbs/verbs_types.h"

namespace r2cc::net::verbs {

enum class FenceStep : uint8_t {
  kError,  // post the own receive; to the error state
  kDrain,  // the own receive comes back flushed
  kReset,  // where the driver's RESET waits for what is being placed
  kDestroy,
  kSecondLine,  // deregister the regions that it could write; the device answers queries
  kDone,
};
enum class FenceEvent : uint8_t {
  kOk,
  kFailed,  // the call failed, or the step took too long: it proves nothing
  kGone,    // the device is gone
};
// What decides the next step, besides the event.
struct FenceKind {
  bool reset_waits = true;
  bool second_line = true;  // false: it writes no memory of the job. A destroy ends it, whatever failed before.
};
// The table. `sound`: nothing has failed so far.
struct FenceNext {
  FenceStep step = FenceStep::kDone;
  bool sound = true;
};
FenceNext Next(FenceStep step, FenceEvent event, bool sound, FenceKind kind);

class Fence {
 public:
  struct Target {
    QueuePairId queue_pair{};
    CompletionQueueId completions{};  // of this queue pair alone
    uint64_t own_receive = 0;         // wr_id of the receive that only the fence posts
    uint64_t newest_receive = 0;      // wr_id of the newest receive that the link has posted
    bool reset_waits = true;          // see ResetWaits() in device.h
  };
  // What it needs from others. All MAY BLOCK.
  struct Calls {
    std::function<bool()> gone;        // Device::IsGone()
    std::function<bool()> answers;     // Device::Answers()
    std::function<int()> second_line;  // deregisters what the queue pair could write. 0 or an errno. Null: it writes nothing of the job.
  };
  enum class Result {
    kRunning,
    kProved,    // nothing is placed through it any more
    kGone,      // the same by absence: the device is gone
    kUnproved,  // reported once; it continues to try
  };

  Fence(Verbs* verbs, const Target& target, Calls calls);

  // Makes the next call. Nothing: it is over. Otherwise call again after that time.
  std::optional<Nanos> Step(Nanos now);
  // The result so far. kUnproved may still become kProved or kGone.
  Result result() const { return result_; }
  FenceStep step() const { return step_; }
  // The queue pair is destroyed.
  bool destroyed() const { return destroyed_; }

 private:
  FenceEvent Do(Nanos now);
  FenceEvent EventOf(int error) const;
  bool PostOwn();
  FenceEvent Drain(Nanos now);
  FenceEvent Destroy();

  Verbs* const verbs_;
  const Target target_;
  const Calls calls_;
  const FenceKind kind_;
  FenceStep step_ = FenceStep::kError;
  bool sound_ = true;
  bool destroyed_ = false;
  bool posted_ = false;
  bool waits_ = false;  // the drain continues
  Nanos drain_until_ = 0;
  Nanos wait_ = 0;  // before the last step is tried again
  Result result_ = Result::kRunning;
};

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_FENCE_H_
