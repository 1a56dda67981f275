#include "netplugin/link/retry_policy.h"

#include "netplugin/link/retry_wait.h"

namespace r2cc::net {

void RetryPolicy::Wait(Nanos hold, Nanos now) {
  back_off_ = waits_.Next();
  wait_ = RetryWait(back_off_, session_, link_, attempts_);
  due_ = now + std::max(wait_, hold);
}

void RetryPolicy::AttemptFailed(Nanos now) { Wait(0, now); }

void RetryPolicy::Lost(Nanos lasted, Loss loss, Nanos now) {
  if (lasted >= kStallForgottenAfter) stall_hold_ = 0;
  if (loss == Loss::kFlap) damper_.Lost(now);
  if (loss == Loss::kStall) {
    stall_hold_ = stall_hold_ == 0 ? kStallHoldLeast : std::min(kStallHoldMost, 3 * stall_hold_);
    stalled_until_ = now + stall_hold_;
  }
  if (lasted >= kSteadyAfter) waits_.Reset();
  Wait(Hold(now), now);
}

}  // namespace r2cc::net
