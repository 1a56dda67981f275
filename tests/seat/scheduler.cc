#include "tests/seat/scheduler.h"

#include <utility>

namespace r2cc::nccl {

void Scheduler::Add(std::function<void()> body) {
  threads_.push_back(std::make_unique<Thread>());
  Thread* const own = threads_.back().get();
  own->until = [] { return true; };
  own->thread = std::thread([this, own, body = std::move(body)] {
    own->turn.acquire();
    try {
      if (!stuck_) body();
    } catch (const Stuck&) {
    }
    own->done = true;
    Thread* const next = Next();
    running_ = next;
    (next == nullptr ? ended_ : next->turn).release();
  });
}

bool Scheduler::Run() {
  Thread* const first = Next();
  running_ = first;
  if (first != nullptr) {
    first->turn.release();
    ended_.acquire();
  }
  for (const auto& thread : threads_) thread->thread.join();
  return !stuck_;
}

Scheduler::Thread* Scheduler::Next() {
  std::vector<Thread*> ready;
  for (;;) {
    // The world goes on by a few steps as often as not.
    for (uint64_t steps = Random(4); steps > 0 && !stuck_ && step_(); --steps) {
    }
    ready.clear();
    bool all_done = true;
    for (const auto& thread : threads_) {
      if (thread->done) continue;
      all_done = false;
      if (stuck_ || thread->until()) ready.push_back(thread.get());
    }
    if (all_done) return nullptr;
    if (!ready.empty()) return ready[Random(ready.size())];
    if (step_()) continue;
    stuck_ = !when_stuck_();
  }
}

void Scheduler::Block(std::function<bool()> until) {
  Thread* const own = running_;
  own->until = std::move(until);
  Thread* const next = Next();
  if (next != own) {
    running_ = next;
    next->turn.release();
    own->turn.acquire();
  }
  if (stuck_) throw Stuck();
}

}  // namespace r2cc::nccl
