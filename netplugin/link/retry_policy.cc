#include "netplugin/link/retry_policy.h"

#include "netplugin/link/retry_wait.h"

namespace r2cc::net {

void RetryPolicy::Wait(Nanos hold, Nanos now) {
  back_off_ = waits_.Next();
  wait_ = RetryWait(back_off_, session_, link_, attempts_);
  due_ = now + std::max(wait_, hold);
}

void RetryPolicy::AttemptFailed(Nanos now) { Wait(0, now); }

void RetryPolicy::Lost(Nanos lasted, bool flapped, Nanos now) {
  if (flapped) damper_.Lost(now);
  if (lasted >= kSteadyAfter) waits_.Reset();
  Wait(damper_.Hold(now), now);
}

}  // namespace r2cc::net
