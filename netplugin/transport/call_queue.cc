#include "netplugin/transport/call_queue.h"

#include <condition_variable>
#include <utility>

namespace r2cc::net {

void CallQueue::Do(const std::function<void()>& call) {
  std::mutex mutex;
  std::condition_variable done_cv;
  bool done = false;
  {
    std::unique_lock lock(mutex_);
    if (ended_) {
      lock.unlock();
      return call();
    }
    calls_.push_back([&] {
      call();
      const std::lock_guard done_lock(mutex);
      done = true;
      done_cv.notify_one();
    });
  }
  wake_();
  std::unique_lock lock(mutex);
  done_cv.wait(lock, [&] { return done; });
}

void CallQueue::Run() {
  std::vector<std::function<void()>> calls;
  {
    const std::lock_guard lock(mutex_);
    calls.swap(calls_);
  }
  for (const auto& call : calls) call();
}

void CallQueue::End() {
  std::vector<std::function<void()>> calls;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    calls.swap(calls_);
  }
  for (const auto& call : calls) call();
}

}  // namespace r2cc::net
