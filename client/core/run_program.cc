#include "client/core/run_program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/core/clock.h"

namespace r2cc::client {

namespace {

// A descriptor that reads `input` from its begin; -1: there is none.
int Reads(const std::string& input) {
  const int file = memfd_create("input", MFD_CLOEXEC);
  if (file < 0 || pwrite(file, input.data(), input.size(), 0) == static_cast<ssize_t>(input.size())) return file;
  close(file);
  return -1;
}

// Waits for `child` until `end`. True: it ended, and is reaped. A kernel before 5.3 waits for it without limit.
bool HasEndedBy(pid_t child, Nanos end) {
  const int process = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  if (process >= 0) {
    pollfd ended{process, POLLIN, 0};
    int count = 0;
    do {
      const Nanos left = std::max<Nanos>(end - SteadyClock().Now(), 0);
      count = poll(&ended, 1, static_cast<int>(left / kNanosPerMs) + 1);
    } while (count < 0 && errno == EINTR);
    close(process);
    if (count != 1) return false;
  }
  waitpid(child, nullptr, 0);
  return true;
}

}  // namespace

absl::StatusOr<std::string> RunSystemProgram(const std::vector<std::string>& command, size_t bytes_max, int timeout_ms,
                                             const std::string& input) {
  const int file = Reads(input);
  if (file < 0) return absl::ErrnoToStatus(errno, "cannot make a file in memory");
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    close(file);
    return absl::ErrnoToStatus(errno, "cannot make a pipe");
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, file, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  std::vector<std::string> texts = command;
  std::vector<char*> arguments;
  for (std::string& text : texts) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  // Nor a pager, another language or somebody's library path.
  char* const no_environment[] = {nullptr};
  pid_t child = 0;
  // A group of its own, which a timeout ends as a whole: a script's programs would outlive it.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const int error = posix_spawnp(&child, arguments[0], &actions, &attributes, arguments.data(), no_environment);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  close(file);
  if (error != 0) {
    close(ends[0]);
    return absl::NotFoundError(absl::StrCat("cannot run ", command.front(), ": ", std::strerror(error)));
  }
  std::string text;
  const SteadyClock clock;
  const Nanos end = clock.Now() + timeout_ms * kNanosPerMs;
  bool over = false;
  while (!over && clock.Now() < end) {
    pollfd ready{ends[0], POLLIN, 0};
    const int count = poll(&ready, 1, static_cast<int>((end - clock.Now()) / kNanosPerMs) + 1);
    if (count < 0 && errno == EINTR) continue;
    if (count != 1) break;
    char buffer[16'384];
    const ssize_t got = read(ends[0], buffer, sizeof(buffer));
    over = got <= 0;
    if (got > 0) text.append(buffer, static_cast<size_t>(got));
    if (text.size() > 2 * bytes_max) text.erase(0, text.size() - bytes_max);
  }
  close(ends[0]);
  // One that closes its output may go on.
  if (over) over = HasEndedBy(child, end);
  if (!over) {
    kill(-child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  if (text.size() > bytes_max) text.erase(0, text.size() - bytes_max);
  if (!over) absl::StrAppend(&text, "\n(it was ended after ", timeout_ms, " ms)\n");
  return text;
}

}  // namespace r2cc::client
