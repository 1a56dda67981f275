#include "tests/control/perf_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace r2cc::control {
namespace {

// Relative to a test's runfiles.
constexpr char kPerf[] = "tools/perf/r2cc-perf";
constexpr char kPlugins[] = "tests/control/";

int64_t NowMs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1000} + now.tv_nsec / 1'000'000;
}

}  // namespace

std::string Outcome::LastLine() const {
  const size_t end = out.find_last_not_of('\n');
  if (end == std::string::npos) return "";
  const size_t before = out.rfind('\n', end);
  return out.substr(before == std::string::npos ? 0 : before + 1, end - (before == std::string::npos ? 0 : before + 1) + 1);
}

double JsonNumber(const std::string& json, const std::string& name) {
  const std::string key = "\"" + name + "\":";
  const size_t at = json.find(key);
  return at == std::string::npos ? -1 : atof(json.c_str() + at + key.size());
}

PerfProcess::PerfProcess(const std::string& plugin, const std::string& rails, const std::vector<std::string>& flags) {
  std::vector<std::string> words = {kPerf, "--plugin", plugin.find('/') == std::string::npos ? kPlugins + plugin : plugin};
  words.insert(words.end(), flags.begin(), flags.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) abort();
  pid_ = fork();
  if (pid_ == 0) {
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    setenv("R2CC_RAILS", rails.c_str(), 1);
    execv(kPerf, argv.data());
    _exit(127);
  }
  close(out[1]);
  close(err[1]);
  out_ = out[0];
  err_ = err[0];
}

PerfProcess::~PerfProcess() {
  if (pid_ > 0) (void)Finish(0);
  for (const int fd : {out_, err_})
    if (fd >= 0) close(fd);
}

bool PerfProcess::Read(int timeout_ms) {
  pollfd fds[2] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};
  if (poll(fds, 2, timeout_ms) <= 0) return true;
  for (int i = 0; i < 2; ++i) {
    if (fds[i].fd < 0 || fds[i].revents == 0) continue;
    char buffer[4096];
    const ssize_t n = read(fds[i].fd, buffer, sizeof(buffer));
    if (n > 0) (i == 0 ? outcome_.out : outcome_.err).append(buffer, n);
    if (n > 0) continue;
    close(fds[i].fd);
    (i == 0 ? out_ : err_) = -1;
  }
  return out_ >= 0 || err_ >= 0;
}

bool PerfProcess::WaitForError(const std::string& text, int limit_s) {
  const int64_t deadline = NowMs() + limit_s * int64_t{1000};
  while (outcome_.err.find(text) == std::string::npos)
    if (NowMs() >= deadline || !Read(100)) return false;
  return true;
}

Outcome PerfProcess::Finish(int limit_s) {
  constexpr int64_t kKillMs = 5000;  // ranks that outlive their parent may hold the streams for a moment
  const int64_t deadline = NowMs() + limit_s * int64_t{1000};
  bool killed = false;
  while (Read(100)) {
    if (NowMs() >= deadline && !killed) {
      kill(pid_, SIGKILL);
      killed = true;
    }
    if (NowMs() >= deadline + kKillMs) break;
  }
  int state = 0;
  waitpid(pid_, &state, 0);
  pid_ = -1;
  outcome_.exit_code = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
  return outcome_;
}

int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), length) != 0 || getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0)
    abort();
  close(fd);
  return ntohs(address.sin_port);
}

}  // namespace r2cc::control
