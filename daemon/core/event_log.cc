#include "daemon/core/event_log.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace r2cc::daemon {

void EventLog::Keep(v1::Event event) {
  event.set_instance(instance_);
  const bool audited = event.has_audit();
  Ring& ring = audited ? audited_ : events_;
  ring.push_back(std::move(event));
  if (ring.size() > (audited ? audited_most_ : most_)) ring.pop_front();
}

void EventLog::Restore(std::vector<v1::Event> events, uint64_t instance, uint64_t lost) {
  absl::MutexLock lock(&mutex_);
  instance_ = instance;
  for (v1::Event& event : events) {
    next_sequence_ = std::max(next_sequence_, event.sequence() + 1);
    Keep(std::move(event));
  }
  next_sequence_ += lost;
}

uint64_t EventLog::instance() const {
  absl::MutexLock lock(&mutex_);
  return instance_;
}

uint64_t EventLog::Append(v1::Event event) {
  uint64_t sequence;
  {
    absl::MutexLock lock(&mutex_);
    sequence = next_sequence_++;
    event.set_sequence(sequence);
    Keep(std::move(event));
  }
  absl::MutexLock lock(&listeners_mutex_);
  for (const auto& [id, listener] : listeners_) listener();
  return sequence;
}

std::optional<v1::Event> EventLog::After(uint64_t sequence, const Wanted& wanted, uint64_t* looked) const {
  uint64_t from = sequence;
  std::optional<v1::Event> found;
  for (bool more = true; more && !found.has_value();) {
    absl::MutexLock lock(&mutex_);
    // The events of both rings, in the order of their numbers.
    const auto above = [&](const Ring& ring) {
      return std::upper_bound(ring.begin(), ring.end(), from,
                              [](uint64_t number, const v1::Event& one) { return number < one.sequence(); });
    };
    auto event = above(events_), audited = above(audited_);
    for (size_t i = 0; i < kLookedAtOnce && !found.has_value(); ++i) {
      const bool in_events = event != events_.end() && (audited == audited_.end() || event->sequence() < audited->sequence());
      if (!in_events && audited == audited_.end()) {
        from = std::max(from, next_sequence_ - 1);
        more = false;
        break;
      }
      const v1::Event& next = in_events ? *event++ : *audited++;
      from = next.sequence();
      if (!wanted || wanted(next)) found = next;
    }
  }
  if (looked != nullptr) *looked = from;
  return found;
}

uint64_t EventLog::BeforeLast(size_t count, const Wanted& wanted) const {
  // From the newest on.
  uint64_t below = UINT64_MAX;
  for (size_t counted = 0;;) {
    absl::MutexLock lock(&mutex_);
    const auto end = [&](const Ring& ring) {
      return std::make_reverse_iterator(
          std::lower_bound(ring.begin(), ring.end(), below, [](const v1::Event& one, uint64_t number) { return one.sequence() < number; }));
    };
    auto event = end(events_), audited = end(audited_);
    for (size_t i = 0; i < kLookedAtOnce; ++i) {
      const bool in_events = event != events_.rend() && (audited == audited_.rend() || event->sequence() > audited->sequence());
      if (!in_events && audited == audited_.rend()) return 0;
      const v1::Event& next = in_events ? *event++ : *audited++;
      below = next.sequence();
      if (wanted(next) && ++counted > count) return below;
    }
  }
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
