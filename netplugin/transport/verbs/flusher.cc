#include "netplugin/transport/verbs/flusher.h"

#include <optional>
#include <utility>

namespace r2cc::net::verbs {

Flusher::~Flusher() {
  if (making_ == nullptr) return;
  // The pair ends where it was made, after that.
  domain_->device()->control()->Submit(JobKind::kClose, [making = std::exchange(making_, nullptr)](Nanos) -> std::optional<Nanos> {
    if (!making->made.load(std::memory_order_acquire)) return kNanosPerMs;
    making->pair = nullptr;
    return std::nullopt;
  });
}

void Flusher::Flush(const FlushName& name, const void* at, uint32_t remote_key) {
  waiting_.push_back({name, at, remote_key});
  if (making_ != nullptr) return;
  making_ = std::make_shared<Making>();
  domain_->device()->control()->Submit(JobKind::kOpen,
                                       [making = making_, domain = domain_, options = options_, log = log_](Nanos) -> std::optional<Nanos> {
                                         std::string error;
                                         auto pair = std::make_unique<LoopbackPair>(domain, options);
                                         if (pair->Make(&error))
                                           making->pair = std::move(pair);
                                         else
                                           log(LogLevel::kWarn, error);
                                         making->made.store(true, std::memory_order_release);
                                         return std::nullopt;
                                       });
}

bool Flusher::Poll(const std::function<void(const FlushName&)>& done) {
  if (!outstanding() || !making_->made.load(std::memory_order_acquire)) return true;
  LoopbackPair* const pair = making_->pair.get();
  if (pair == nullptr) return false;
  for (; !waiting_.empty() && posted_.size() < LoopbackPair::kRequests; waiting_.pop_front()) {
    if (pair->Flush(waiting_.front().at, waiting_.front().remote_key) != 0) return false;
    posted_.push_back(waiting_.front().name);
  }
  uint32_t ended = 0;
  const bool ok = pair->Poll(&ended);
  for (; ended > 0 && !posted_.empty(); --ended) {
    const FlushName name = posted_.front();
    posted_.pop_front();
    done(name);
  }
  return ok;
}

}  // namespace r2cc::net::verbs
