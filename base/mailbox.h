// One-way mail from any thread to a module on an executor: a bounded queue that drops the newest value when full, and counts the drops.
// Push never blocks and is thread-safe. The reader is called on the executor, with at most one wake-up under way.
//
// Lifetime: a mailbox may be destroyed while a wake-up is under way; the reader is not called any more once the destructor has
// returned, provided that it runs on the executor's thread or when the executor has stopped.
#ifndef R2CC_BASE_MAILBOX_H_
#define R2CC_BASE_MAILBOX_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/core/mutex.h"
#include "base/executor.h"

namespace r2cc {

template <typename T>
class QueueMailbox {
 public:
  using Reader = std::function<void(T)>;
  // In one turn of the executor.
  static constexpr size_t kHandedMax = 16;

  // Holds at most `limit` values. `executor` outlives the mailbox.
  QueueMailbox(Executor* executor, size_t limit, Reader reader) : state_(std::make_shared<State>(executor, limit, std::move(reader))) {}
  ~QueueMailbox() {
    const MutexLock lock(state_->mutex);
    state_->closed = true;
  }
  QueueMailbox(const QueueMailbox&) = delete;
  QueueMailbox& operator=(const QueueMailbox&) = delete;

  // False if the queue is full: the value is dropped and counted.
  bool Push(T value) {
    {
      const MutexLock lock(state_->mutex);
      if (state_->values.size() >= state_->limit) {
        ++state_->dropped;
        return false;
      }
      state_->values.push_back(std::move(value));
      if (std::exchange(state_->waking, true)) return true;
    }
    State::Wake(state_);
    return true;
  }

  uint64_t dropped() const {
    const MutexLock lock(state_->mutex);
    return state_->dropped;
  }
  size_t depth() const {
    const MutexLock lock(state_->mutex);
    return state_->values.size();
  }

 private:
  struct State {
    State(Executor* executor, size_t limit, Reader reader) : executor(executor), limit(limit), reader(std::move(reader)) {}

    // Hands over one value at a time, so the reader may destroy the mailbox, and few in one go, so that other tasks of the executor get
    // their turn.
    static void Drain(const std::shared_ptr<State>& state) {
      for (size_t handed = 0; handed < std::min(state->limit, kHandedMax); ++handed) {
        std::optional<T> value;
        {
          const MutexLock lock(state->mutex);
          if (state->closed || state->values.empty()) {
            state->waking = false;
            return;
          }
          value.emplace(std::move(state->values.front()));
          state->values.pop_front();
        }
        state->reader(std::move(*value));
      }
      Wake(state);
    }

    static void Wake(const std::shared_ptr<State>& state) {
      state->executor->Post([state] { Drain(state); });
    }

    Executor* const executor;
    const size_t limit;
    const Reader reader;
    Mutex mutex;
    std::deque<T> values R2CC_GUARDED_BY(mutex);
    uint64_t dropped R2CC_GUARDED_BY(mutex) = 0;
    bool waking R2CC_GUARDED_BY(mutex) = false;
    bool closed R2CC_GUARDED_BY(mutex) = false;
  };
  std::shared_ptr<State> state_;
};

}  // namespace r2cc

#endif  // R2CC_BASE_MAILBOX_H_
