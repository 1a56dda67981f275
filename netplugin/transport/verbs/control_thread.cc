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

RealControlThread::RealControlThread(const Clock* clock, std::string name) : clock_(clock), name_(std::move(name)) {}

void RealControlThread::Start() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(started_, true)) return;
  for (Worker& worker : workers_) worker.thread = std::thread([this, &worker] { Run(&worker); });
}

void RealControlThread::FinishClosing(Nanos most) {
  std::unique_lock lock(mutex_);
  const Worker& closing = WorkerOf(JobKind::kClose);
  changed_.wait_for(lock, std::chrono::nanoseconds(most), [&] { return closing.undone == 0 || stop_ || !started_; });
}

void RealControlThread::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (Worker& worker : workers_) {
    if (worker.thread.joinable()) worker.thread.join();
    // What jobs hold ends without the lock.
    const JobQueue dropped = std::exchange(worker.jobs, {});
  }
}

void RealControlThread::Submit(JobKind kind, ControlJob job) {
  {
    const std::lock_guard lock(mutex_);
    if (stop_) return;
    ++WorkerOf(kind).undone;
    WorkerOf(kind).jobs.Add(kind, clock_->Now(), std::move(job));
  }
  changed_.notify_all();
}

void RealControlThread::Run(Worker* worker) {
  pthread_setname_np(pthread_self(), name_.c_str());
  std::unique_lock lock(mutex_);
  while (!stop_) {
    auto next = worker->jobs.Take(clock_->Now());
    if (!next) {
      const auto due = worker->jobs.next();
      if (due)
        changed_.wait_for(lock, std::chrono::nanoseconds(std::max<Nanos>(*due - clock_->Now(), 1)));
      else
        changed_.wait(lock);
      continue;
    }
    lock.unlock();
    const JobKind kind = next->first;
    const auto again = next->second(clock_->Now());
    if (!again) next.reset();  // what it holds ends without the lock
    lock.lock();
    if (again) {
      worker->jobs.Add(kind, clock_->Now() + *again, std::move(next->second));
    } else if (--worker->undone == 0) {
      changed_.notify_all();
    }
  }
}

}  // namespace r2cc::net::verbs
