#include "netplugin/transport/verbs/control_thread.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
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
  const std::lock_guard lock(state_->mutex);
  if (std::exchange(state_->started, true)) return;
  for (Worker& worker : state_->workers) worker.thread = std::thread([state = state_, &worker] { Run(state.get(), &worker); });
}

void RealControlThread::FinishClosing(Nanos most) {
  std::unique_lock lock(state_->mutex);
  const Worker& closing = state_->Of(JobKind::kClose);
  state_->changed.wait_for(lock, std::chrono::nanoseconds(most), [&] { return closing.undone == 0 || state_->stop || !state_->started; });
}

void RealControlThread::Stop() {
  const std::shared_ptr<State> state = state_;
  {
    const std::lock_guard lock(state->mutex);
    state->stop = true;
  }
  state->changed.notify_all();
  for (Worker& worker : state->workers) {
    if (worker.thread.get_id() == std::this_thread::get_id())
      worker.thread.detach();
    else if (worker.thread.joinable())
      worker.thread.join();
    // What jobs hold ends without the lock.
    JobQueue dropped;
    {
      const std::lock_guard lock(state->mutex);
      std::swap(dropped, worker.jobs);
    }
  }
}

void RealControlThread::Submit(JobKind kind, ControlJob job) {
  // The job may have ended this before others are notified of it.
  const std::shared_ptr<State> state = state_;
  {
    const std::lock_guard lock(state->mutex);
    if (state->stop) return;
    ++state->Of(kind).undone;
    state->Of(kind).jobs.Add(kind, state->clock->Now(), std::move(job));
  }
  state->changed.notify_all();
}

void RealControlThread::Run(State* state, Worker* worker) {
  pthread_setname_np(pthread_self(), state->name.c_str());
  std::unique_lock lock(state->mutex);
  while (!state->stop) {
    auto next = worker->jobs.Take(state->clock->Now());
    if (!next) {
      const auto due = worker->jobs.next();
      if (due)
        state->changed.wait_for(lock, std::chrono::nanoseconds(std::max<Nanos>(*due - state->clock->Now(), 1)));
      else
        state->changed.wait(lock);
      continue;
    }
    lock.unlock();
    const JobKind kind = next->first;
    const auto again = next->second(state->clock->Now());
    if (!again) next.reset();  // what it holds ends without the lock
    lock.lock();
    if (again && state->stop) {
      lock.unlock();
      next.reset();
      lock.lock();
    } else if (again) {
      worker->jobs.Add(kind, state->clock->Now() + *again, std::move(next->second));
    } else if (--worker->undone == 0) {
      state->changed.notify_all();
    }
  }
}

}  // namespace r2cc::net::verbs
