#include "base/event_loop.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/core/check.h"
#include "base/core/mutex.h"

namespace r2cc {
namespace {

constexpr uint64_t kWakeSerial = 1;
constexpr uint64_t kTimerSerial = 2;
constexpr int kEventsPerTurn = 64;

// Reads the counter of an eventfd or timerfd, which makes it unreadable again.
void Drain(int fd) {
  uint64_t count;
  while (read(fd, &count, sizeof(count)) < 0 && errno == EINTR) {
  }
}

// RunAndWait waits for this. Fulfilled by the task, or by the destruction of the task unrun.
class Promise {
 public:
  void Settle(bool ran) {
    const MutexLock lock(mutex_);
    if (settled_) return;
    settled_ = true;
    ran_ = ran;
    changed_.NotifyAll();
  }
  bool Wait() {
    const MutexLock lock(mutex_);
    changed_.Wait(mutex_, [this]() R2CC_REQUIRES(mutex_) { return settled_; });
    return ran_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool settled_ R2CC_GUARDED_BY(mutex_) = false;
  bool ran_ R2CC_GUARDED_BY(mutex_) = false;
};

struct BreakUnlessKept {
  explicit BreakUnlessKept(std::shared_ptr<Promise> promise) : promise(std::move(promise)) {}
  ~BreakUnlessKept() { promise->Settle(false); }
  std::shared_ptr<Promise> promise;
};

}  // namespace

EventLoop::EventLoop()
    : epoll_fd_(epoll_create1(EPOLL_CLOEXEC)),
      wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      timer_fd_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
      last_serial_(kTimerSerial) {
  // Without descriptors there is no daemon: nothing to fall back to.
  R2CC_CHECK(epoll_fd_ >= 0 && wake_fd_ >= 0 && timer_fd_ >= 0);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kWakeSerial;
  R2CC_CHECK(epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, wake_fd_, &event) == 0);
  event.data.u64 = kTimerSerial;
  R2CC_CHECK(epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, timer_fd_, &event) == 0);
}

EventLoop::~EventLoop() {
  R2CC_CHECK(thread_.load() == std::thread::id());
  std::deque<Task> unrun;
  {
    const MutexLock lock(mutex_);
    ended_ = true;
    unrun.swap(posted_);
  }
  unrun.clear();
  timers_.Clear();
  watches_.clear();
  close(timer_fd_);
  close(wake_fd_);
  close(epoll_fd_);
}

absl::Status EventLoop::AddFd(int fd, uint32_t epoll_events, FdHandler handler) {
  if (serial_of_fd_.contains(fd)) return absl::AlreadyExistsError(absl::StrCat("descriptor ", fd, " is in the event loop already"));
  const uint64_t serial = ++last_serial_;
  epoll_event event{};
  event.events = epoll_events;
  event.data.u64 = serial;
  if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("adding descriptor ", fd, " to the event loop"));
  watches_.emplace(serial, std::make_shared<Watch>(Watch{fd, std::move(handler)}));
  serial_of_fd_.emplace(fd, serial);
  return absl::OkStatus();
}

absl::Status EventLoop::ModifyFd(int fd, uint32_t epoll_events) {
  const auto found = serial_of_fd_.find(fd);
  if (found == serial_of_fd_.end()) return absl::NotFoundError(absl::StrCat("descriptor ", fd, " is not in the event loop"));
  epoll_event event{};
  event.events = epoll_events;
  event.data.u64 = found->second;
  if (epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, fd, &event) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("changing descriptor ", fd, " in the event loop"));
  return absl::OkStatus();
}

void EventLoop::RemoveFd(int fd) {
  const auto found = serial_of_fd_.find(fd);
  if (found == serial_of_fd_.end()) return;
  // Fails if the caller closed it too early; it is gone from epoll then, too.
  epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr);
  watches_.erase(found->second);
  serial_of_fd_.erase(found);
}

void EventLoop::Post(Task task) {
  {
    const MutexLock lock(mutex_);
    if (!ended_) {
      posted_.push_back(std::move(task));
      if (posted_.size() > 1) return;  // the wake-up for the first is under way
      // Under the lock: after the loop ended, and its descriptor may be gone, nobody comes here.
      Wake();
      return;
    }
  }
  task = nullptr;  // unrun, outside the lock: a destructor may post
}

TimerId EventLoop::RunAfter(Nanos delay, Task task) { return timers_.Add(Now() + (delay > 0 ? delay : 0), std::move(task)); }

bool EventLoop::Cancel(TimerId timer) { return timers_.Cancel(timer); }

bool EventLoop::RunAndWait(Task task) {
  if (InLoopThread()) {
    task();
    return true;
  }
  const auto promise = std::make_shared<Promise>();
  Post([guard = std::make_shared<BreakUnlessKept>(promise), task = std::move(task)] {
    task();
    guard->promise->Settle(true);
  });
  return promise->Wait();
}

void EventLoop::Wake() {
  const uint64_t one = 1;
  while (write(wake_fd_, &one, sizeof(one)) < 0 && errno == EINTR) {
  }
}

void EventLoop::RunPosted() {
  Drain(wake_fd_);
  if (batch_.empty()) {
    const MutexLock lock(mutex_);
    batch_.swap(posted_);
  }
  while (!batch_.empty() && !stop_.load()) {
    {
      const Task task = std::move(batch_.front());
      batch_.pop_front();
      task();
    }
    if (TurnIsOver()) break;
  }
  // The remaining tasks of the batch are for the next turn, and so are those posted behind it, whose wake-up may have been drained.
  bool more = !batch_.empty();
  if (!more) {
    const MutexLock lock(mutex_);
    more = !posted_.empty();
  }
  if (more) Wake();
}

void EventLoop::RunTimers() {
  // One look at the clock: a timer that starts another one that is due at once does not starve the descriptors.
  const Nanos now = Now();
  while (!stop_.load()) {
    const Task task = timers_.TakeDue(now);
    if (!task) return;
    task();
    if (!TurnIsOver()) continue;
    armed_for_ = 0;  // those that are left are due in the next turn
    return;
  }
}

void EventLoop::ArmTimer() {
  const Nanos due = timers_.NextDue().value_or(0);
  if (due == armed_for_) return;
  itimerspec when{};
  when.it_value.tv_sec = due / kNanosPerSecond;
  when.it_value.tv_nsec = due % kNanosPerSecond;
  R2CC_CHECK(timerfd_settime(timer_fd_, TFD_TIMER_ABSTIME, &when, nullptr) == 0);
  armed_for_ = due;
}

void EventLoop::Run() {
  {
    const MutexLock lock(mutex_);
    R2CC_CHECK(!ended_ && thread_.load() == std::thread::id());
  }
  thread_.store(std::this_thread::get_id());
  epoll_event events[kEventsPerTurn];
  EndTurn();
  while (!stop_.load()) {
    ArmTimer();
    const int count = epoll_wait(epoll_fd_, events, kEventsPerTurn, -1);
    R2CC_CHECK(count >= 0 || errno == EINTR);
    BeginTurn();
    for (int i = 0; i < count && !stop_.load(); ++i) {
      if (TurnIsOver()) {
        EndTurn();
        BeginTurn();
        RunTimers();
      }
      const uint64_t serial = events[i].data.u64;
      if (serial == kWakeSerial) {
        RunPosted();
      } else if (serial == kTimerSerial) {
        Drain(timer_fd_);
        armed_for_ = 0;
        RunTimers();
      } else if (const auto found = watches_.find(serial); found != watches_.end()) {
        const std::shared_ptr<Watch> watch = found->second;  // the handler may remove itself
        watch->handler(events[i].events);
      }
    }
    EndTurn();
  }
  std::deque<Task> unrun;
  {
    const MutexLock lock(mutex_);
    ended_ = true;
    unrun.swap(posted_);
  }
  batch_.clear();
  unrun.clear();
  thread_.store(std::thread::id());
}

void EventLoop::Stop() {
  stop_.store(true);
  Post([] {});  // wakes it
}

ScopedLoopThread::ScopedLoopThread(const std::string& name) {
  // A new thread inherits the mask: signals stay with the thread that wants them.
  sigset_t all, before;
  sigfillset(&all);
  R2CC_CHECK(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
  thread_ = std::thread([this, name = name.substr(0, 15)] {
    pthread_setname_np(pthread_self(), name.c_str());
    loop_.Run();
  });
  R2CC_CHECK(pthread_sigmask(SIG_SETMASK, &before, nullptr) == 0);
}

ScopedLoopThread::~ScopedLoopThread() {
  loop_.Stop();
  thread_.join();
}

}  // namespace r2cc
