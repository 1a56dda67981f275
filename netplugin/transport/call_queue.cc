#include "netplugin/transport/call_queue.h"

#include <utility>

namespace r2cc::net {

void CallQueue::Do(FunctionRef<void()> call) {
  Waiting waiting{call};
  {
    std::unique_lock lock(mutex_);
    if (ended_) {
      lock.unlock();
      return call();
    }
    *last_ = &waiting;
    last_ = &waiting.next;
  }
  wake_();
  {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return waiting.done; });
  }
  if (waiting.thrown != nullptr) std::rethrow_exception(waiting.thrown);
}

void CallQueue::Post(std::function<void()> call) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    posted_.push_back(std::move(call));
  }
  wake_();
}

void CallQueue::RunAll(Waiting* first) {
  while (first != nullptr) {
    // Once it is done it is gone.
    Waiting* const waiting = std::exchange(first, first->next);
    try {
      waiting->call();
    } catch (...) {
      waiting->thrown = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    waiting->done = true;
    done_.notify_all();
  }
}

void CallQueue::Run() {
  Waiting* first = nullptr;
  std::vector<std::function<void()>> posted;
  {
    const std::lock_guard lock(mutex_);
    first = std::exchange(first_, nullptr);
    last_ = &first_;
    posted.swap(posted_);
  }
  for (const auto& call : posted) call();
  RunAll(first);
}

void CallQueue::End() {
  Waiting* first = nullptr;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    posted_.clear();
    first = std::exchange(first_, nullptr);
    last_ = &first_;
  }
  RunAll(first);
}

}  // namespace r2cc::net
