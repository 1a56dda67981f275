// Decides when to open a link again: exponential back-off with jitter after a failed attempt, and flap damping after a loss. Pure.
#ifndef R2CC_NETPLUGIN_LINK_RETRY_POLICY_H_
#define R2CC_NETPLUGIN_LINK_RETRY_POLICY_H_

#include <algorithm>
#include <cstdint>

#include "base/core/clock.h"
#include "base/core/retry.h"
#include "netplugin/flow/tuning.h"
#include "netplugin/link/flap_damper.h"

namespace r2cc::net {

class RetryPolicy {
 public:
  // For the jitter: the session's number, and the link's number in it.
  RetryPolicy(uint64_t session, uint32_t link) : retry_(tuning::kRetryWaitLeast, tuning::kRetryWaitMost, Retry::Jitter{session, link}) {}

  // ---- what happened ----

  void Began() { retry_.Began(); }
  void AttemptFailed(Nanos now);
  enum class Loss {
    kRetired,  // the session does not need it: no evidence against its rail
    kFlap,
    kStall,  // it carried nothing although it was up
  };
  // The link is lost after it was up, or ending, for `lasted`.
  void Lost(Nanos lasted, Loss loss, Nanos now);
  // There is reason to think that the link works now: it may be tried as soon as the damping allows.
  void Restart(Nanos now) { due_ = now + Hold(now); }
  // The same, but never later than it was due before.
  void Hasten(Nanos now) { due_ = std::min(due_, now + Hold(now)); }
  // The link is the last way to the peer, and has not been up since `since`: ignores the damping.
  void IgnoreDamping(Nanos since) { due_ = std::min(due_, since + std::max(retry_.wait(), tuning::kRetryWaitLeast)); }

  // ---- what follows ----

  bool IsDue(Nanos now) const { return now >= due_; }
  // Twice the wait before the attempt. On a machine that is too busy for the first attempts, one attempt a second would keep it busy.
  Nanos attempt_limit() const { return std::max(tuning::kAttemptLeast, 2 * retry_.back_off()); }
  // The link has failed, or was lost, at least once.
  bool has_failed() const { return retry_.back_off() > 0; }

 private:
  void Wait(Nanos hold, Nanos now);
  Nanos Hold(Nanos now) const { return std::max(damper_.Hold(now), stalled_until_ - now); }

  Retry retry_;
  FlapDamper damper_;
  Nanos stall_hold_ = 0;  // the last hold; 0: it has not stalled lately
  Nanos stalled_until_ = 0;
  Nanos due_ = 0;  // by the retry and the damping
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_RETRY_POLICY_H_
