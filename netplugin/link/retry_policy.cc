#include "netplugin/link/retry_policy.h"

#include "netplugin/flow/tuning.h"

namespace r2cc::net {

void RetryPolicy::Wait(Nanos hold, Nanos now) {
  retry_.Failed(now);
  due_ = now + std::max(retry_.wait(), hold);
}

void RetryPolicy::AttemptFailed(Nanos now) { Wait(0, now); }

void RetryPolicy::Lost(Nanos lasted, Loss loss, Nanos now) {
  if (lasted >= tuning::kStallHoldMost) stall_hold_ = 0;
  if (loss == Loss::kFlap) damper_.Lost(now);
  if (loss == Loss::kStall) {
    stall_hold_ = stall_hold_ == 0 ? tuning::kSlowRetryLeast : std::min(tuning::kStallHoldMost, 3 * stall_hold_);
    stalled_until_ = now + stall_hold_;
  }
  if (lasted >= tuning::kRetryWaitMost) retry_.Worked();
  Wait(Hold(now), now);
}

}  // namespace r2cc::net
