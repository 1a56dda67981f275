#include "daemon/service/signals.h"

#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "base/log.h"

namespace r2cc::daemon {

Signals::Signals() {
  sigemptyset(&set_);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set_, signal);
  sigset_t all;
  sigfillset(&all);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&all, signal);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  fd_ = signalfd(-1, &set_, SFD_NONBLOCK | SFD_CLOEXEC);
}

Signals::~Signals() { close(fd_); }

absl::Status Signals::Follow(EventLoop* loop, std::function<void(const Caller&)> reload) {
  return loop->AddFd(fd_, EPOLLIN, [this, loop, reload = std::move(reload)](uint32_t) {
    signalfd_siginfo info{};
    while (read(fd_, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
      LogInfo("signal", {{"name", strsignal(static_cast<int>(info.ssi_signo))}, {"from_pid", info.ssi_pid}});
      if (info.ssi_signo != SIGHUP)
        loop->Stop();
      else
        reload({.kind = Caller::Kind::kLocal, .uid = info.ssi_uid, .pid = static_cast<int32_t>(info.ssi_pid)});
    }
  });
}

}  // namespace r2cc::daemon
