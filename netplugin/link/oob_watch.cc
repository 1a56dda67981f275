#include "netplugin/link/oob_watch.h"

#include "netplugin/link/retry_wait.h"

namespace r2cc::net {
namespace {

// The first is soon: mostly the peer's process is only starting. The most is what a peer waits for us when it is back.
constexpr Nanos kBackOffLeast = 50 * kNanosPerMs;
constexpr Nanos kBackOffMost = 2 * kNanosPerSecond;

}  // namespace

OobWatch::OobWatch(uint64_t retry_seed) : retry_seed_(retry_seed), waits_(kBackOffLeast, kBackOffMost) {}

bool OobWatch::Try(Nanos now) {
  if (state_ != State::kDown || now < retry_at_) return false;
  state_ = State::kOpening;
  ++tries_;
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
  waits_.Reset();
}

void OobWatch::Down(ProbeResult result, Nanos now) {
  refused_ = result == ProbeResult::kRefused;
  if (result != ProbeResult::kSilent) silent_since_ = 0;
  if (result == ProbeResult::kSilent && silent_since_ == 0) silent_since_ = now;
  retry_at_ = now + RetryWait(up() ? 0 : waits_.Next(), retry_seed_, kLinksMax, tries_);
  state_ = State::kDown;
}

}  // namespace r2cc::net
