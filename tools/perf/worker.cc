#include "tools/perf/worker.h"

#include <errno.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace r2cc::perf {
namespace {

int MakeEventFd() {
  const int fd = eventfd(0, EFD_CLOEXEC);
  if (fd >= 0) return fd;
  perror("r2cc-perf: eventfd");
  exit(1);
}

}  // namespace

Worker::Worker(const std::string& name) : done_fd_(MakeEventFd()), thread_([this] { Main(); }) {
  pthread_setname_np(thread_.native_handle(), name.c_str());
}

Worker::~Worker() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  wake_.NotifyOne();
  thread_.join();
  close(done_fd_);
}

void Worker::Start(std::function<Status()> task) {
  {
    const MutexLock lock(mutex_);
    task_ = std::move(task);
  }
  wake_.NotifyOne();
}

Status Worker::Take() {
  uint64_t count;
  while (read(done_fd_, &count, sizeof(count)) < 0 && errno == EINTR) {
  }
  const MutexLock lock(mutex_);
  return std::move(result_);
}

void Worker::Main() {
  MutexLock lock(mutex_);
  for (;;) {
    while (!stop_ && !task_) wake_.Wait(mutex_);
    if (!task_) return;
    const std::function<Status()> task = std::exchange(task_, nullptr);
    lock.Unlock();
    Status result = task();
    lock.Lock();
    result_ = std::move(result);
    const uint64_t one = 1;
    (void)!write(done_fd_, &one, sizeof(one));
  }
}

}  // namespace r2cc::perf
