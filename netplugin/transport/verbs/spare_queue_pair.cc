#include "netplugin/transport/verbs/spare_queue_pair.h"

#include <optional>
#include <string>
#include <utility>

namespace r2cc::net::verbs {
namespace {

constexpr int kTries = 2;  // a call that fails once is no device that can make none

}  // namespace

void SpareQueuePair::Make(const std::shared_ptr<Device>& device, const QueuePairOptions& options) {
  {
    const std::lock_guard lock(mutex_);
    const bool fits = pair_ != nullptr && device_ == device && pair_->port() == options.port;
    if (over_ || fits || device->gone()) return;
  }
  std::unique_ptr<QueuePair> made;
  for (int tries = 0; tries < kTries && made == nullptr; ++tries) {
    made = std::make_unique<QueuePair>(device, options);
    if (std::string error; !made->Make(&error)) made = nullptr;
  }
  // Without it the next one may get the same number, and has other sequence numbers still.
  if (made == nullptr) return;
  // What it replaces, or it itself, ends without the lock.
  const std::lock_guard lock(mutex_);
  if (over_) return;
  pair_.swap(made);
  device_ = device;
}

std::unique_ptr<QueuePair> SpareQueuePair::Take(const Device* device, uint8_t port) {
  std::unique_ptr<QueuePair> taken;
  std::shared_ptr<Device> of;
  {
    const std::lock_guard lock(mutex_);
    taken = std::move(pair_);
    of = std::move(device_);
  }
  if (taken != nullptr && (of.get() != device || taken->port() != port)) taken = nullptr;
  return taken;
}

void SpareQueuePair::End() {
  std::shared_ptr<QueuePair> left;
  std::shared_ptr<Device> device;
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
    left = std::move(pair_);
    device = std::move(device_);
  }
  if (left == nullptr) return;
  device->control()->Submit(JobKind::kClose, [held = std::move(left)](Nanos) mutable -> std::optional<Nanos> {
    held = nullptr;
    return std::nullopt;
  });
}

}  // namespace r2cc::net::verbs
