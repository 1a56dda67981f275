// When a link is tried again: exponential back-off with jitter after an attempt that failed, and flap damping after a loss. Pure.
#ifndef R2CC_NETPLUGIN_LINK_RETRY_POLICY_H_
#define R2CC_NETPLUGIN_LINK_RETRY_POLICY_H_

#include <algorithm>
#include <cstdint>

#include "base/core/back_off.h"
#include "base/core/clock.h"
#include "netplugin/link/flap_damper.h"

namespace r2cc::net {

class RetryPolicy {
 public:
  static constexpr Nanos kWaitLeast = 50 * kNanosPerMs;
  static constexpr Nanos kWaitMost = 2 * kNanosPerSecond;
  // What was up for less is not steady: its back-off goes on doubling.
  static constexpr Nanos kSteadyAfter = 2 * kNanosPerSecond;
  // A link that passes its data check and then stalls under load costs the job the silence each time. The wait triples with each stall, so
  // ten minutes of such a link cost at most seven stalls: 1.75 s with R2CC_SILENCE_MS at 250. Up for longer than kStallForgottenAfter, it
  // starts with the least wait again.
  static constexpr Nanos kStallHoldLeast = kNanosPerSecond;
  static constexpr Nanos kStallHoldMost = 300 * kNanosPerSecond;
  static constexpr Nanos kStallForgottenAfter = 120 * kNanosPerSecond;
  // How long an attempt may take at least.
  static constexpr Nanos kAttemptLeast = kNanosPerSecond;

  // For the jitter: a session's own number, and the link in it.
  RetryPolicy(uint64_t session, uint32_t link) : session_(session), link_(link) {}

  // ---- what happened ----

  void Began() { ++attempts_; }
  void AttemptFailed(Nanos now);
  enum class Loss {
    kRetired,  // it is not needed: that does not speak against its rail
    kFlap,
    kStall,  // it carried nothing although it was up
  };
  // It is lost after it was up, or ending, for `lasted`.
  void Lost(Nanos lasted, Loss loss, Nanos now);
  // There is reason to think that it works now: it may be tried as soon as the damping allows ...
  void Restart(Nanos now) { due_ = now + Hold(now); }
  // ... or when it would have been anyway.
  void Hasten(Nanos now) { due_ = std::min(due_, now + Hold(now)); }
  // It is the last way, and is not up since `since`: no damping counts.
  void IgnoreDamping(Nanos since) { due_ = std::min(due_, since + std::max(wait_, kWaitLeast)); }

  // ---- what follows ----

  bool IsDue(Nanos now) const { return now >= due_; }
  // Twice the wait before the attempt: where a machine is too busy for the first ones, trying again each second would keep it so.
  Nanos attempt_limit() const { return std::max(kAttemptLeast, 2 * back_off_); }
  // It failed, or was lost, at least once.
  bool has_failed() const { return back_off_ > 0; }

 private:
  void Wait(Nanos hold, Nanos now);
  Nanos Hold(Nanos now) const { return std::max(damper_.Hold(now), stalled_until_ - now); }

  uint64_t session_;
  uint32_t link_;
  uint32_t attempts_ = 0;
  ExponentialBackOff waits_{kWaitLeast, kWaitMost};
  FlapDamper damper_;
  Nanos stall_hold_ = 0;  // the last one; 0: it has not stalled lately
  Nanos stalled_until_ = 0;
  Nanos back_off_ = 0;  // the last of `waits_`
  Nanos wait_ = 0;      // the same with jitter
  Nanos due_ = 0;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_RETRY_POLICY_H_
