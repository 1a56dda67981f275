#include "netplugin/transport/flow_closer.h"

#include "netplugin/flow/tuning.h"

namespace r2cc::net {
void FlowCloser::Begin(Close* close, std::function<bool()> holds, Nanos now) {
  if (ended_ || !holds()) return Done(close);
  close->holds_ = std::move(holds);
  close->warn_at_ = now + tuning::kWarnAgainAfter;
  closes_.push_back(close);
}

void FlowCloser::Look(Nanos now) {
  std::erase_if(closes_, [&](Close* close) {
    if (!close->holds_()) {
      Done(close);
      return true;
    }
    if (now < close->warn_at_) return false;
    close->warn_at_ = now + tuning::kWarnAgainAfter;
    log_(LogLevel::kWarn,
         "R2CC: a device may still access a buffer of a flow that the job has closed. The close waits until the device ends the link; "
         "restart the process if it does not");
    return false;
  });
}

void FlowCloser::End() {
  ended_ = true;
  for (Close* const close : std::exchange(closes_, {})) Done(close);
}

void FlowCloser::Done(Close* close) {
  // Once the lock is given back the close may be gone.
  const MutexLock lock(close->mutex_);
  close->done_ = true;
  close->changed_.NotifyAll();
}

void FlowCloser::Await(Close* close) {
  const MutexLock lock(close->mutex_);
  while (!close->done_) close->changed_.Wait(close->mutex_);
}

}  // namespace r2cc::net
