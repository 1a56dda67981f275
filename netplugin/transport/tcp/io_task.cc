#include "netplugin/transport/tcp/io_task.h"

#include <utility>

namespace r2cc::net {

void IoTask::Run() {
  bool on = true, prepared = false;
  const auto ask = [&](bool posted) {
    prepared = (on || posted) && Prepare();
    if (!prepared) return false;
    unreported_ = true;
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

bool IoTask::Finish() { return std::exchange(unreported_, false) && Commit(); }

void SocketOwnership::HandOver(Workers* workers, Workers::Way way, size_t place, int fd, std::shared_ptr<IoTask> task) {
  task_ = std::move(task);
  pending_ = false;
  token_ = workers->Add(way, place, fd, task_);
}

void SocketOwnership::End(Workers* workers, int fd) {
  if (task_ == nullptr) return;
  workers->Remove(token_, fd);
  task_->Await();
  task_->Detach();
  task_.reset();
}

}  // namespace r2cc::net
