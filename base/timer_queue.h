// Timers in the order in which they are due; those due at the same time in the order in which they were added. No clock of its own.
// One thread at a time.
#ifndef R2CC_BASE_TIMER_QUEUE_H_
#define R2CC_BASE_TIMER_QUEUE_H_

#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/executor.h"

namespace r2cc {

class TimerQueue {
 public:
  TimerId Add(Nanos due, Task task) {
    const TimerId id = ++last_id_;
    tasks_.emplace(Key{due, id}, std::move(task));
    due_.emplace(id, due);
    return id;
  }

  bool Cancel(TimerId id) {
    const auto found = due_.find(id);
    if (found == due_.end()) return false;
    tasks_.erase(Key{found->second, id});
    due_.erase(found);
    return true;
  }

  // When the first timer is due; nothing if there is none.
  std::optional<Nanos> NextDue() const {
    if (tasks_.empty()) return std::nullopt;
    return tasks_.begin()->first.first;
  }

  // Takes out the first timer if it is due at `now`; an empty task if none is.
  Task TakeDue(Nanos now) {
    if (tasks_.empty() || tasks_.begin()->first.first > now) return nullptr;
    const auto first = tasks_.begin();
    Task task = std::move(first->second);
    due_.erase(first->first.second);
    tasks_.erase(first);
    return task;
  }

  void Clear() {
    tasks_.clear();
    due_.clear();
  }

 private:
  using Key = std::pair<Nanos, TimerId>;
  TimerId last_id_ = 0;
  std::map<Key, Task> tasks_;
  std::unordered_map<TimerId, Nanos> due_;
};

}  // namespace r2cc

#endif  // R2CC_BASE_TIMER_QUEUE_H_
