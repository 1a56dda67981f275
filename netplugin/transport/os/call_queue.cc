#include "netplugin/transport/os/call_queue.h"

#include <utility>

namespace r2cc::net {

void CallQueue::Do(FunctionRef<void()> call) {
  Waiting waiting{call};
  {
    MutexLock lock(mutex_);
    if (ended_) {
      lock.Unlock();
      return call();
    }
    *last_ = &waiting;
    last_ = &waiting.next;
  }
  wake_();
  {
    const MutexLock lock(mutex_);
    while (!waiting.done) done_.Wait(mutex_);
  }
  if (waiting.thrown != nullptr) std::rethrow_exception(waiting.thrown);
}

void CallQueue::Post(std::function<void()> call) {
  {
    const MutexLock lock(mutex_);
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
    const MutexLock lock(mutex_);
    waiting->done = true;
    done_.NotifyAll();
  }
}

void CallQueue::Run() {
  Waiting* first = nullptr;
  std::vector<std::function<void()>> posted;
  {
    const MutexLock lock(mutex_);
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
    const MutexLock lock(mutex_);
    ended_ = true;
    posted_.clear();
    first = std::exchange(first_, nullptr);
    last_ = &first_;
  }
  RunAll(first);
}

}  // namespace r2cc::net
