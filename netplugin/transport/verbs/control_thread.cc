#include "netplugin/transport/verbs/control_thread.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

namespace r2cc::net::verbs {

std::optional<std::pair<JobKind, ControlJob>> JobQueue::Take(Nanos now) {
  auto best = jobs_.end();
  for (auto it = jobs_.begin(); it != jobs_.end() && it->first.due <= now; ++it)
    if (best == jobs_.end() || std::pair(it->first.kind, it->first.order) < std::pair(best->first.kind, best->first.order)) best = it;
  if (best == jobs_.end()) return std::nullopt;
  auto taken = jobs_.extract(best);
  return std::pair(taken.key().kind, std::move(taken.mapped()));
}

std::optional<Nanos> JobQueue::next() const {
  if (jobs_.empty()) return std::nullopt;
  return jobs_.begin()->first.due;
}

RealControlThread::RealControlThread(const Clock* clock, std::string name) {
  state_->clock = clock;
  state_->name = std::move(name);
}

void RealControlThread::Start() {
  const MutexLock lock(state_->mutex);
  if (std::exchange(state_->started, true)) return;
  for (size_t kind = 0; kind < kJobKinds; ++kind)
    state_->threads[kind] = std::thread([state = state_, kind] { Run(state.get(), static_cast<JobKind>(kind)); });
}

void RealControlThread::FinishClosing(Nanos most) {
  State* const state = state_.get();
  const MutexLock lock(state->mutex);
  state->changed.WaitFor(state->mutex, most, [state]() R2CC_REQUIRES(state->mutex) {
    return state->Of(JobKind::kClose).undone == 0 || state->stop || !state->started;
  });
}

void RealControlThread::Stop() {
  const std::shared_ptr<State> state = state_;
  {
    const MutexLock lock(state->mutex);
    state->stop = true;
  }
  state->changed.NotifyAll();
  for (size_t kind = 0; kind < kJobKinds; ++kind) {
    std::thread& thread = state->threads[kind];
    if (thread.get_id() == std::this_thread::get_id())
      thread.detach();
    else if (thread.joinable())
      thread.join();
    // What jobs hold ends without the lock.
    JobQueue dropped;
    {
      const MutexLock lock(state->mutex);
      std::swap(dropped, state->Of(static_cast<JobKind>(kind)).jobs);
    }
  }
}

void RealControlThread::Submit(JobKind kind, ControlJob job) {
  // The job may have ended this before others are notified of it.
  const std::shared_ptr<State> state = state_;
  {
    const MutexLock lock(state->mutex);
    if (state->stop) return;
    ++state->Of(kind).undone;
    state->Of(kind).jobs.Add(kind, state->clock->Now(), std::move(job));
  }
  state->changed.NotifyAll();
}

void RealControlThread::Run(State* state, JobKind own) {
  pthread_setname_np(pthread_self(), state->name.c_str());
  MutexLock lock(state->mutex);
  Worker* const worker = &state->Of(own);
  while (!state->stop) {
    auto next = worker->jobs.Take(state->clock->Now());
    if (!next) {
      const auto due = worker->jobs.next();
      if (due)
        state->changed.WaitFor(state->mutex, std::max<Nanos>(*due - state->clock->Now(), 1));
      else
        state->changed.Wait(state->mutex);
      continue;
    }
    lock.Unlock();
    const JobKind kind = next->first;
    const auto again = next->second(state->clock->Now());
    if (!again) next.reset();  // what it holds ends without the lock
    lock.Lock();
    if (again && state->stop) {
      lock.Unlock();
      next.reset();
      lock.Lock();
    } else if (again) {
      worker->jobs.Add(kind, state->clock->Now() + *again, std::move(next->second));
    } else if (--worker->undone == 0) {
      state->changed.NotifyAll();
    }
  }
}

}  // namespace r2cc::net::verbs
