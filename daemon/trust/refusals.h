// Counts and reports refusals: for the log, and for `r2ccctl status`.
#ifndef R2CC_DAEMON_TRUST_REFUSALS_H_
#define R2CC_DAEMON_TRUST_REFUSALS_H_

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/core/clock.h"
#include "base/log.h"
#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

// Thread-safe.
class Refusals {
 public:
  // An unauthenticated caller may try as often as it likes: the log has one line a second for each listener and reason, with the number.
  static constexpr Nanos kLogInterval = kNanosPerSecond;

  // One line of the log: refusals for `listener` and `reason` since the line before, the last one of `who`.
  struct Line {
    std::string listener, reason, who, what;
    uint64_t times = 0;
  };

  // `realtime_ns`: CLOCK_REALTIME.
  explicit Refusals(std::function<int64_t()> realtime_ns) : realtime_ns_(std::move(realtime_ns)) {}

  // `listener` and `reason` are of few kinds, ours; `who` and `what` (the request, or why it was refused) are for people.
  void Count(const std::string& listener, const std::string& reason, const std::string& who, const std::string& what) {
    const int64_t now = realtime_ns_();
    uint64_t more = 0;
    {
      absl::MutexLock lock(&mutex_);
      Entry& entry = entries_[{listener, reason}];
      ++entry.times;
      entry.last = who;
      entry.last_ns = now;
      ++entry.more;
      if (entry.logged_ns != 0 && now >= entry.logged_ns && now - entry.logged_ns < kLogInterval) return;
      entry.logged_ns = now;
      more = std::exchange(entry.more, 0);
    }
    LogWarning(absl::StrCat("refused: ", what), {{"who", who}, {"listener", listener}, {"reason", reason}, {"times", more}});
    absl::MutexLock lock(&subscriber_mutex_);
    if (subscriber_) subscriber_({listener, reason, who, what, more});
  }

  // Calls `subscriber` with each line, on any thread; null: with none. When this returns the former function is not running and will not
  // run again.
  void Subscribe(std::function<void(const Line&)> subscriber) {
    absl::MutexLock lock(&subscriber_mutex_);
    subscriber_ = std::move(subscriber);
  }

  std::vector<v1::Refusal> List() const {
    absl::MutexLock lock(&mutex_);
    std::vector<v1::Refusal> list;
    for (const auto& [key, entry] : entries_) {
      v1::Refusal& refusal = list.emplace_back();
      refusal.set_listener(key.first);
      refusal.set_reason(key.second);
      refusal.set_times(entry.times);
      refusal.set_last(entry.last);
      refusal.set_last_ns(entry.last_ns);
    }
    return list;
  }

 private:
  struct Entry {
    uint64_t times = 0;
    uint64_t more = 0;
    std::string last;
    int64_t last_ns = 0;
    int64_t logged_ns = 0;
  };
  const std::function<int64_t()> realtime_ns_;
  mutable absl::Mutex mutex_;
  std::map<std::pair<std::string, std::string>, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  absl::Mutex subscriber_mutex_;
  std::function<void(const Line&)> subscriber_ ABSL_GUARDED_BY(subscriber_mutex_);
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_TRUST_REFUSALS_H_
