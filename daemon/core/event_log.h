// The last things that happened on this node, in order: what `r2ccctl events` shows.
#ifndef R2CC_DAEMON_CORE_EVENT_LOG_H_
#define R2CC_DAEMON_CORE_EVENT_LOG_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

// Keeps events. Bounded: a reader that lags by more than `most` events loses the oldest, and sees that by the gap in the sequence numbers.
// Operators' requests (Event.audit) have places of their own, which events of jobs do not take.
// Thread-safe.
class EventLog {
 public:
  static constexpr size_t kEventsMax = 32768;  // as many as EventHistory gives back
  static constexpr size_t kAuditedMax = 1024;

  explicit EventLog(size_t most = kEventsMax, size_t audited_most = kAuditedMax) : most_(most), audited_most_(audited_most) {}
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  // More events than a former run can have numbered and lost: the jobs of one user make this number in 8 hours.
  static constexpr uint64_t kLostMax = 1'000'000;
  // Takes the events of former runs, by ascending number, before the first Append. Numbers continue from there, in the same `instance`,
  // which is not 0. `lost`: readers may know events of this many numbers that are not here, and none of these numbers is given out again.
  void Restore(std::vector<v1::Event> events, uint64_t instance, uint64_t lost = 0);
  uint64_t instance() const;

  // Gives `event` the next sequence number (from 1), keeps it and notifies the listeners. Returns the number.
  uint64_t Append(v1::Event event);

  using Wanted = std::function<bool(const v1::Event&)>;
  // The oldest kept event with a number above `sequence`, of those that are `wanted` (null: all). `looked`, if not null, is how far it has
  // looked: there is no need to look at those again.
  std::optional<v1::Event> After(uint64_t sequence, const Wanted& wanted = nullptr, uint64_t* looked = nullptr) const;

  // The number after which the newest `count` of the `wanted` events follow; 0: there are no more.
  uint64_t BeforeLast(size_t count, const Wanted& wanted) const;

  // Number of the newest event; 0: none yet.
  uint64_t last_sequence() const;

  // `on_event` is called after each Append, on the appending thread, without the log's lock. When Unlisten returns it is not running
  // and will not run again; so Unlisten may not be called from within it.
  using ListenerId = uint64_t;
  ListenerId Listen(std::function<void()> on_event);
  void Unlisten(ListenerId id);

 private:
  // Events that a reader looks at before it lets go of the lock, for which the core may wait: some 10 us.
  static constexpr size_t kLookedAtOnce = 256;
  using Ring = std::deque<v1::Event>;  // by sequence number
  void Keep(v1::Event event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t most_;
  const size_t audited_most_;
  mutable absl::Mutex mutex_;
  Ring events_ ABSL_GUARDED_BY(mutex_);
  Ring audited_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_sequence_ ABSL_GUARDED_BY(mutex_) = 1;
  uint64_t instance_ ABSL_GUARDED_BY(mutex_) = 1;
  // Apart from mutex_, so that a listener may read the log.
  absl::Mutex listeners_mutex_;
  std::map<ListenerId, std::function<void()>> listeners_ ABSL_GUARDED_BY(listeners_mutex_);
  ListenerId next_listener_ ABSL_GUARDED_BY(listeners_mutex_) = 1;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_CORE_EVENT_LOG_H_
