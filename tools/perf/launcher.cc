#include "tools/perf/launcher.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "tools/perf/bootstrap.h"
#include "tools/perf/clock.h"
#include "tools/perf/net.h"
#include "tools/perf/rank.h"

namespace r2cc::perf {
namespace {

constexpr int64_t kGraceNs = 10'000'000'000;  // for the other ranks to end after one failed
constexpr time_t kLookS = 1;

// The signals that this process waits for instead of being interrupted by them.
sigset_t AwaitedSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM}) sigaddset(&signals, signal);
  return signals;
}

// Whether the plugin can be loaded at all, in a process of its own: one clear line instead of one per rank, and no thread of the plugin
// exists across a fork.
bool PluginLoads(const Options& options) {
  fflush(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    std::unique_ptr<Net> net;
    const Status status = LoadNet(options.plugin, options.table_version, &net);
    if (!status.ok()) fprintf(stderr, "r2cc-perf: %s\n", status.message().c_str());
    fflush(nullptr);
    _exit(status.ok() ? 0 : 1);
  }
  int state = 0;
  while (pid > 0 && waitpid(pid, &state, 0) < 0 && errno == EINTR) {
  }
  return pid > 0 && WIFEXITED(state) && WEXITSTATUS(state) == 0;
}

// The scheduler may leave two ranks on one processor for a whole run, while another is idle.
bool Pin(int rank, int processors) {
  cpu_set_t allowed, own;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return false;
  CPU_ZERO(&own);
  const int shares = std::max(1, CPU_COUNT(&allowed) / processors);
  const int first = rank % shares * processors;
  int number = 0;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (!CPU_ISSET(processor, &allowed)) continue;
    if (number >= first && number < first + processors) CPU_SET(processor, &own);
    ++number;
  }
  return sched_setaffinity(0, sizeof(own), &own) == 0;
}

class Children {
 public:
  bool Start(const Options& options, int listen_fd, int port);
  // Waits for all; returns the exit code of the job.
  int Wait();

 private:
  // True while a rank is alive.
  bool ReapAll();
  void Reap(int rank, int state);
  void SignalAll(int signal) {
    for (const pid_t pid : pids_)
      if (pid > 0) kill(pid, signal);
  }

  std::vector<pid_t> pids_;  // by rank; 0: has ended
  int exit_code_ = 0;
  int64_t failed_ns_ = 0;
};

bool Children::Start(const Options& options, int listen_fd, int port) {
  const pid_t parent = getpid();
  for (int rank = 0; rank < options.ranks; ++rank) {
    fflush(nullptr);
    const pid_t pid = fork();
    if (pid < 0) {
      fprintf(stderr, "r2cc-perf: cannot start rank %d: %s\n", rank, strerror(errno));
      SignalAll(SIGKILL);
      return false;
    }
    if (pid == 0) {
      const sigset_t signals = AwaitedSignals();
      sigprocmask(SIG_UNBLOCK, &signals, nullptr);
      setpgid(0, 0);  // Ctrl-C reaches this process alone, which passes it on
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);
      if (options.pin > 0 && !Pin(rank, options.pin)) {
        fprintf(stderr, "r2cc-perf: --pin: cannot keep rank %d to its processors: %s\n", rank, strerror(errno));
        _exit(1);
      }
      if (rank != 0) close(listen_fd);
      Options mine = options;
      mine.root = "127.0.0.1:" + std::to_string(port);
      const int code = RunRank(mine, rank, rank == 0 ? listen_fd : -1);
      fflush(nullptr);
      _exit(code);
    }
    pids_.push_back(pid);
  }
  return true;
}

int Children::Wait() {
  const sigset_t signals = AwaitedSignals();
  int asked_to_stop = 0;
  while (ReapAll()) {
    const timespec look{kLookS, 0};
    const int signal = sigtimedwait(&signals, nullptr, &look);
    if (signal == SIGINT || signal == SIGTERM) {
      ++asked_to_stop;
      if (asked_to_stop > 1) {
        SignalAll(SIGKILL);
      } else if (pids_[0] > 0) {
        kill(pids_[0], SIGTERM);
      }
    }
    if (failed_ns_ > 0 && NowNs() - failed_ns_ > kGraceNs) SignalAll(SIGKILL);
  }
  return exit_code_;
}

bool Children::ReapAll() {
  bool left = false;
  for (size_t rank = 0; rank < pids_.size(); ++rank) {
    int state = 0;
    if (pids_[rank] > 0 && waitpid(pids_[rank], &state, WNOHANG) > 0) {
      pids_[rank] = 0;
      Reap(static_cast<int>(rank), state);
    }
    left = left || pids_[rank] > 0;
  }
  return left;
}

void Children::Reap(int rank, int state) {
  const bool fine = WIFEXITED(state) && WEXITSTATUS(state) == 0;
  if (fine) return;
  exit_code_ = 1;
  if (failed_ns_ == 0) failed_ns_ = NowNs();
  if (WIFSIGNALED(state))
    fprintf(stderr, "r2cc-perf: rank %d was ended by signal %d (%s)\n", rank, WTERMSIG(state), strsignal(WTERMSIG(state)));
}

}  // namespace

int LaunchLocalRanks(const Options& options) {
  if (!PluginLoads(options)) return 1;
  int listen_fd = -1;
  int port = 0;
  const Status status = ListenTcp("127.0.0.1:0", &listen_fd, &port);
  if (!status.ok()) {
    fprintf(stderr, "r2cc-perf: %s\n", status.message().c_str());
    return 1;
  }
  const sigset_t signals = AwaitedSignals();
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  Children children;
  const bool started = children.Start(options, listen_fd, port);
  close(listen_fd);
  return started ? children.Wait() : 1;
}

}  // namespace r2cc::perf
