#include "netplugin/link/oob_watch.h"

#include "netplugin/flow/tuning.h"
#include "netplugin/link/retry_policy.h"

namespace r2cc::net {

// As a link's, whose names end below kLinksMax.
OobWatch::OobWatch(uint64_t retry_seed) : retry_(tuning::kRetryWaitLeast, tuning::kRetryWaitMost, Retry::Jitter{retry_seed, kLinksMax}) {}

bool OobWatch::Try(Nanos now) {
  if (state_ != State::kDown || !retry_.IsDue(now)) return false;
  state_ = State::kOpening;
  retry_.Began();
  return true;
}

void OobWatch::Ungreeted(Nanos now) {
  if (state_ != State::kOpening) return;
  state_ = State::kUngreeted;
  ungreeted_since_ = now;
  refused_ = false;
  silent_since_ = 0;
}

void OobWatch::Up() {
  state_ = State::kUp;
  refused_ = false;
  silent_since_ = 0;
  retry_.Restart();
}

void OobWatch::Down(ProbeResult result, Nanos now) {
  refused_ = result == ProbeResult::kRefused;
  if (result != ProbeResult::kSilent) silent_since_ = 0;
  if (result == ProbeResult::kSilent && silent_since_ == 0) silent_since_ = now;
  // One that was up is opened again at once.
  if (!up()) retry_.Failed(now);
  state_ = State::kDown;
}

}  // namespace r2cc::net
