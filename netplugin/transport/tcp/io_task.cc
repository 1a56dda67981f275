#include "netplugin/transport/tcp/io_task.h"

#include <utility>

#include "netplugin/flow/mutant.h"

namespace r2cc::net {

void IoTask::Run() {
  bool on = true, prepared = false;
  const auto ask = [&](bool posted) {
    prepared = (on || posted) && Prepare();
    if (!prepared) return false;
    untold_ = true;
    calling_.store(true, std::memory_order_relaxed);
    return true;
  };
  bool alive = owner_->WithLock([] { return false; }, ask);
  while (alive && prepared) {
    Call();
    calling_.store(false, std::memory_order_release);
    calling_.notify_all();
    prepared = false;
    alive = owner_->WithLock(
        [&] {
          on = Finish();
          return true;
        },
        ask);
  }
}

bool IoTask::Finish() { return std::exchange(untold_, false) && Commit(); }

void SocketOwnership::HandOver(Workers* workers, Workers::Way way, size_t place, int fd, std::shared_ptr<IoTask> task) {
  task_ = std::move(task);
  pending_ = paused_ = false;
  token_ = workers->Add(way, place, fd, task_);
}

void SocketOwnership::Drop() {
  task_->Detach();
  task_.reset();
}

void SocketOwnership::End(Workers* workers, int fd) {
  if (task_ == nullptr) return;
  workers->Remove(token_, fd);
  task_->Await();
  Drop();
}

void SocketOwnership::Release(Workers* workers, int fd) {
  if (!by_worker()) return;
  workers->Remove(token_, fd);
  Pause();
  Drop();
}

void SocketOwnership::Pause() {
  if (!by_worker()) return;
  Await();
  if (!IsActive(Mutant::kReleasedUnreported)) task_->Finish();
  paused_ = true;
}

bool SocketOwnership::Resume() {
  if (task_ == nullptr || !paused_) return false;
  pending_ = paused_ = false;
  return true;
}

}  // namespace r2cc::net
