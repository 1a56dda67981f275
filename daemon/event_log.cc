#include "daemon/event_log.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace r2cc::daemon {

void EventLog::Keep(v1::Event event) {
  event.set_instance(instance_);
  const bool audited = event.has_audit();
  Ring& ring = audited ? audited_ : events_;
  ring.push_back(std::move(event));
  if (ring.size() > (audited ? audited_most_ : most_)) ring.pop_front();
}

void EventLog::Restore(std::vector<v1::Event> events, uint64_t instance) {
  absl::MutexLock lock(&mutex_);
  instance_ = instance;
  for (v1::Event& event : events) {
    next_sequence_ = std::max(next_sequence_, event.sequence() + 1);
    Keep(std::move(event));
  }
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
  absl::MutexLock lock(&mutex_);
  const v1::Event* next = nullptr;
  for (const Ring* ring : {&events_, &audited_}) {
    auto event = std::upper_bound(ring->begin(), ring->end(), sequence,
                                  [](uint64_t number, const v1::Event& one) { return number < one.sequence(); });
    if (wanted) event = std::find_if(event, ring->end(), wanted);
    if (event != ring->end() && (next == nullptr || event->sequence() < next->sequence())) next = &*event;
  }
  if (looked != nullptr) *looked = std::max(sequence, next == nullptr ? next_sequence_ - 1 : next->sequence());
  return next == nullptr ? std::nullopt : std::optional(*next);
}

uint64_t EventLog::BeforeLast(size_t count, const Wanted& wanted) const {
  absl::MutexLock lock(&mutex_);
  std::vector<uint64_t> numbers;
  for (const Ring* ring : {&events_, &audited_})
    for (const v1::Event& event : *ring)
      if (wanted(event)) numbers.push_back(event.sequence());
  if (numbers.size() <= count) return 0;
  std::sort(numbers.begin(), numbers.end());
  return numbers[numbers.size() - count - 1];
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
