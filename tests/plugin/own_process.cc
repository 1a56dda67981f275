#include "tests/plugin/own_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

// AddressSanitizer asks when a process exits: scenarios end with contexts and communicators open, on purpose.
extern "C" int __lsan_is_turned_off() { return 1; }

namespace r2cc::plugin_test {

double NowS() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

bool Await(double limit_s, const std::function<bool()>& condition) {
  const double until = NowS() + limit_s;
  while (!condition()) {
    if (NowS() >= until) return false;
    sched_yield();
  }
  return true;
}

void Broken(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: not so: %s\n", file, line, condition);
  std::fflush(nullptr);
  _exit(99);
}

OwnProcess::OwnProcess(const Environment& environment, const std::function<int()>& body) {
  int fds[2];
  R2CC_MUST(pipe2(fds, O_CLOEXEC) == 0);
  std::fflush(nullptr);
  pid_ = fork();
  R2CC_MUST(pid_ >= 0);
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(fds[1], STDOUT_FILENO);
    dup2(fds[1], STDERR_FILENO);
    setenv("R2CC_ATTACH", "none", 1);
    setenv("R2CC_RAILS", "127.0.0.1,127.0.0.2,127.0.0.3,127.0.0.4", 1);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    std::exit(body());
  }
  close(fds[1]);
  output_ = fds[0];
}

OwnProcess::~OwnProcess() {
  if (!ended_) kill(pid_, SIGKILL);
  (void)Wait(60);
  close(output_);
}

void OwnProcess::Read(int timeout_ms) {
  pollfd ready{output_, POLLIN, 0};
  if (poll(&ready, 1, timeout_ms) <= 0) return;
  char buffer[4096];
  const ssize_t n = read(output_, buffer, sizeof(buffer));
  if (n > 0) text_.append(buffer, static_cast<size_t>(n));
  // At its end the descriptor stays readable: the process is about to be reaped.
  if (n == 0) poll(nullptr, 0, timeout_ms);
}

bool OwnProcess::Reap() {
  if (!ended_) ended_ = waitpid(pid_, &status_, WNOHANG) == pid_;
  return ended_;
}

const std::string& OwnProcess::text() {
  for (size_t before = text_.size() + 1; before != text_.size();) {
    before = text_.size();
    Read(0);
  }
  return text_;
}

bool OwnProcess::WaitForText(const std::string& words, double limit_s) {
  const double until = NowS() + limit_s;
  while (text_.find(words) == std::string::npos) {
    const bool over = Reap() || NowS() >= until;
    Read(over ? 0 : 10);
    if (over) return text().find(words) != std::string::npos;
  }
  return true;
}

int OwnProcess::Wait(double limit_s) {
  const double until = NowS() + limit_s;
  while (!Reap()) {
    if (NowS() >= until) kill(pid_, SIGKILL);
    Read(10);
  }
  text();
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
}

}  // namespace r2cc::plugin_test
