#include "tools/perf/sleepers.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace r2cc::perf {

Status Sleepers::Fork(int count, int rank) {
  for (int i = 0; i < count; ++i) {
    fflush(nullptr);
    const pid_t pid = fork();
    if (pid < 0) return Status::Error(std::string("cannot fork a child: ") + strerror(errno));
    if (pid == 0) {
      // A reader of our output must see its end when the rank ends.
      for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(fd);
      alarm(kLifetimeS);
      for (;;) pause();
    }
    pids_.push_back(pid);
    fprintf(stderr, "r2cc-perf[%d]: forked child %d\n", rank, static_cast<int>(pid));
  }
  return {};
}

void Sleepers::End() {
  for (const pid_t pid : pids_) {
    kill(pid, SIGKILL);
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  pids_.clear();
}

}  // namespace r2cc::perf
