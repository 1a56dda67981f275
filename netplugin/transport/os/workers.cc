#include "netplugin/transport/os/workers.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/core/clock.h"

namespace r2cc::net {
namespace {

constexpr uint64_t kWakeToken = 0;
constexpr int kEventsMax = 64;

}  // namespace

std::unique_ptr<Workers> Workers::Start(int threads, Nanos awake_for, std::string* error, const char* name) {
  std::unique_ptr<Workers> workers(new Workers(awake_for));
  for (int i = 0; i < threads; ++i) {
    auto worker = std::make_unique<Worker>();
    worker->epoll = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
    worker->wake = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = kWakeToken;
    if (!worker->epoll || !worker->wake || epoll_ctl(worker->epoll.get(), EPOLL_CTL_ADD, worker->wake.get(), &event) != 0) {
      *error = std::string("R2CC: cannot make an epoll or event descriptor: ") + std::strerror(errno);
      return nullptr;
    }
    workers->workers_.push_back(std::move(worker));
  }
  // Not before all of them are there: a thread looks for its tasks by their number.
  for (const auto& worker : workers->workers_)
    worker->thread = std::thread([all = workers.get(), one = worker.get(), name] { all->Run(one, name); });
  return workers;
}

Workers::~Workers() {
  stop_ = true;
  for (const auto& worker : workers_) {
    if (!worker->thread.joinable()) continue;
    eventfd_write(worker->wake.get(), 1);
    worker->thread.join();
  }
}

Workers::Token Workers::Add(Way way, size_t place, int fd, std::shared_ptr<Task> task) {
  const bool sends = way == Way::kSend;
  const size_t count = workers_.size(), half = count / 2;
  const Token token = (++serial_) * count + (sends ? place % std::max<size_t>(half, 1) : half + place % (count - half));
  Worker& worker = Of(token);
  {
    const MutexLock lock(worker.mutex);
    worker.entries[token].task = std::move(task);
  }
  epoll_event event{};
  event.events = (sends ? EPOLLOUT : EPOLLIN) | EPOLLET;
  event.data.u64 = token;
  if (fd >= 0) epoll_ctl(worker.epoll.get(), EPOLL_CTL_ADD, fd, &event);
  return token;
}

void Workers::Wake(Token token) {
  Worker& worker = Of(token);
  bool wake = false;
  {
    const MutexLock lock(worker.mutex);
    const auto it = worker.entries.find(token);
    if (it == worker.entries.end() || std::exchange(it->second.woken, true)) return;
    worker.woken.push_back(token);
    wake = std::exchange(worker.asleep, false);
  }
  if (wake) eventfd_write(worker.wake.get(), 1);
}

void Workers::Remove(Token token, int fd) {
  Worker& worker = Of(token);
  if (fd >= 0) epoll_ctl(worker.epoll.get(), EPOLL_CTL_DEL, fd, nullptr);
  std::shared_ptr<Task> last;  // its end may be more than a lock should see
  const MutexLock lock(worker.mutex);
  const auto it = worker.entries.find(token);
  if (it == worker.entries.end()) return;
  last = std::move(it->second.task);
  worker.entries.erase(it);
}

std::shared_ptr<Workers::Task> Workers::Find(Worker* worker, Token token) {
  const MutexLock lock(worker->mutex);
  const auto it = worker->entries.find(token);
  if (it == worker->entries.end()) return nullptr;
  it->second.woken = false;
  return it->second.task;
}

void Workers::Run(Worker* worker, const char* name) {
  pthread_setname_np(pthread_self(), name);
  prctl(PR_SET_TIMERSLACK, 1);
  const SteadyClock clock;
  Nanos busy = 0;  // when there was something to do last
  std::vector<Token> woken;
  while (!stop_.load()) {
    bool asleep;
    {
      const MutexLock lock(worker->mutex);
      woken.swap(worker->woken);
      asleep = worker->asleep = woken.empty() && clock.Now() - busy >= awake_for_;
    }
    for (const Token token : woken)
      if (const auto task = Find(worker, token)) task->Run();
    epoll_event events[kEventsMax];
    const int count = epoll_wait(worker->epoll.get(), events, kEventsMax, asleep ? -1 : 0);
    if (asleep) {
      const MutexLock lock(worker->mutex);
      worker->asleep = false;
    }
    for (int i = 0; i < count; ++i) {
      if (events[i].data.u64 == kWakeToken) {
        eventfd_t value;
        eventfd_read(worker->wake.get(), &value);
      } else if (const auto task = Find(worker, events[i].data.u64)) {
        task->Run();
      }
    }
    if (count > 0 || !woken.empty()) busy = clock.Now();
    woken.clear();
  }
}

}  // namespace r2cc::net
