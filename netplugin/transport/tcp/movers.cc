#include "netplugin/transport/tcp/movers.h"

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
// To be woken up takes a thread some ten microseconds, and who wakes it a few: where one message has come, the next is near.
constexpr Nanos kAwakeFor = 50 * 1000;

}  // namespace

std::unique_ptr<Movers> Movers::Start(int threads, std::string* error) {
  std::unique_ptr<Movers> movers(new Movers);
  for (int i = 0; i < threads; ++i) {
    auto mover = std::make_unique<Mover>();
    mover->epoll = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
    mover->wake = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = kWakeToken;
    if (!mover->epoll || !mover->wake || epoll_ctl(mover->epoll.get(), EPOLL_CTL_ADD, mover->wake.get(), &event) != 0) {
      *error = std::string("R2CC: cannot make an epoll or event descriptor: ") + std::strerror(errno);
      return nullptr;
    }
    movers->movers_.push_back(std::move(mover));
  }
  // Not before all of them are there: a thread looks for its tasks by their number.
  for (const auto& mover : movers->movers_) mover->thread = std::thread([all = movers.get(), one = mover.get()] { all->Run(one); });
  return movers;
}

Movers::~Movers() {
  stop_ = true;
  for (const auto& mover : movers_) {
    if (!mover->thread.joinable()) continue;
    eventfd_write(mover->wake.get(), 1);
    mover->thread.join();
  }
}

Movers::Token Movers::Add(Way way, size_t place, int fd, std::shared_ptr<Task> task) {
  const bool sends = way == Way::kSend;
  const size_t count = movers_.size(), half = count / 2;
  const Token token = (++serial_) * count + (sends ? place % std::max<size_t>(half, 1) : half + place % (count - half));
  Mover& mover = Of(token);
  {
    const std::lock_guard lock(mover.mutex);
    mover.entries[token].task = std::move(task);
  }
  epoll_event event{};
  event.events = (sends ? EPOLLOUT : EPOLLIN) | EPOLLET;
  event.data.u64 = token;
  epoll_ctl(mover.epoll.get(), EPOLL_CTL_ADD, fd, &event);
  return token;
}

void Movers::Call(Token token) {
  Mover& mover = Of(token);
  bool wake = false;
  {
    const std::lock_guard lock(mover.mutex);
    const auto it = mover.entries.find(token);
    if (it == mover.entries.end() || std::exchange(it->second.called, true)) return;
    mover.called.push_back(token);
    wake = std::exchange(mover.asleep, false);
  }
  if (wake) eventfd_write(mover.wake.get(), 1);
}

void Movers::Remove(Token token, int fd) {
  Mover& mover = Of(token);
  epoll_ctl(mover.epoll.get(), EPOLL_CTL_DEL, fd, nullptr);
  std::shared_ptr<Task> last;  // its end may be more than a lock should see
  const std::lock_guard lock(mover.mutex);
  const auto it = mover.entries.find(token);
  if (it == mover.entries.end()) return;
  last = std::move(it->second.task);
  mover.entries.erase(it);
}

std::shared_ptr<Movers::Task> Movers::Find(Mover* mover, Token token) {
  const std::lock_guard lock(mover->mutex);
  const auto it = mover->entries.find(token);
  if (it == mover->entries.end()) return nullptr;
  it->second.called = false;
  return it->second.task;
}

void Movers::Run(Mover* mover) {
  pthread_setname_np(pthread_self(), "r2cc-bulk");
  prctl(PR_SET_TIMERSLACK, 1);
  const SteadyClock clock;
  Nanos busy = 0;  // when there was something to do last
  std::vector<Token> called;
  while (!stop_.load()) {
    bool asleep;
    {
      const std::lock_guard lock(mover->mutex);
      called.swap(mover->called);
      asleep = mover->asleep = called.empty() && clock.Now() - busy >= kAwakeFor;
    }
    for (const Token token : called)
      if (const auto task = Find(mover, token)) task->Run();
    epoll_event events[kEventsMax];
    const int count = epoll_wait(mover->epoll.get(), events, kEventsMax, asleep ? -1 : 0);
    if (asleep) {
      const std::lock_guard lock(mover->mutex);
      mover->asleep = false;
    }
    for (int i = 0; i < count; ++i) {
      if (events[i].data.u64 == kWakeToken) {
        eventfd_t value;
        eventfd_read(mover->wake.get(), &value);
      } else if (const auto task = Find(mover, events[i].data.u64)) {
        task->Run();
      }
    }
    if (count > 0 || !called.empty()) busy = clock.Now();
    called.clear();
  }
}

}  // namespace r2cc::net
