#include "daemon/event_log.h"

#include <utility>

namespace r2cc::daemon {

uint64_t EventLog::Append(v1::Event event) {
  uint64_t sequence;
  {
    absl::MutexLock lock(&mutex_);
    sequence = next_sequence_++;
    event.set_sequence(sequence);
    events_.push_back(std::move(event));
    if (events_.size() > most_) events_.pop_front();
  }
  absl::MutexLock lock(&listeners_mutex_);
  for (const auto& [id, listener] : listeners_) listener();
  return sequence;
}

std::optional<v1::Event> EventLog::After(uint64_t sequence) const {
  absl::MutexLock lock(&mutex_);
  if (events_.empty() || sequence >= events_.back().sequence()) return std::nullopt;
  const uint64_t first = events_.front().sequence();
  return events_[sequence < first ? 0 : sequence + 1 - first];
}

uint64_t EventLog::last_sequence() const {
  absl::MutexLock lock(&mutex_);
  return next_sequence_ - 1;
}

EventLog::ListenerId EventLog::Listen(std::function<void()> on_event) {
  absl::MutexLock lock(&listeners_mutex_);
  const ListenerId id = next_listener_++;
  listeners_.emplace(id, std::move(on_event));
  return id;
}

void EventLog::Unlisten(ListenerId id) {
  absl::MutexLock lock(&listeners_mutex_);
  listeners_.erase(id);
}

}  // namespace r2cc::daemon
