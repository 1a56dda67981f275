#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/core/unique_fd.h"
#include "client/doctor/os_machine.h"

namespace r2cc::client {
namespace {

// The directories of Debian's loader, and those that distributions add.
constexpr const char* kLibraryDirectories[] = {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/usr/local/lib", "/usr/lib64",
                                               "/usr/lib"};
// A library's constructors may hang.
constexpr int kChildMs = 10'000;
constexpr size_t kAnswerBytesMax = 4096;

// The output of `work` in a child process: a library may crash, print and change anything there.
absl::StatusOr<std::string> InChild(const std::function<std::string()>& work) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "cannot make a pipe");
  const UniqueFd read_end(ends[0]);
  const pid_t child = fork();
  if (child < 0) {
    close(ends[1]);
    return absl::ErrnoToStatus(errno, "cannot start a process");
  }
  if (child == 0) {
    const std::string answer = work();
    _exit(write(ends[1], answer.data(), answer.size()) == static_cast<ssize_t>(answer.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string answer(kAnswerBytesMax, '\0');
  pollfd ready{read_end.get(), POLLIN, 0};
  const bool in_time = poll(&ready, 1, kChildMs) == 1;
  const ssize_t got = in_time ? read(read_end.get(), answer.data(), answer.size()) : 0;
  if (!in_time) kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  if (!in_time) return absl::DeadlineExceededError(absl::StrCat("it has not loaded within ", kChildMs / 1000, " s"));
  if (WIFSIGNALED(status)) return absl::InternalError(absl::StrCat("it ends the process: ", strsignal(WTERMSIG(status))));
  answer.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return answer;
}

}  // namespace

std::vector<std::string> OsMachine::Libraries(const std::string& name) {
  std::vector<std::string> directories;
  if (const auto path = environment_.find("LD_LIBRARY_PATH"); path != environment_.end())
    directories = absl::StrSplit(path->second, absl::ByAnyChar(":;"), absl::SkipEmpty());
  directories.insert(directories.end(), std::begin(kLibraryDirectories), std::end(kLibraryDirectories));
  std::vector<std::string> files;
  std::set<std::pair<dev_t, ino_t>> seen;
  for (const std::string& directory : directories) {
    const std::string file = absl::StrCat(directory, "/", name);
    struct stat about {};
    if (stat(file.c_str(), &about) == 0 && seen.emplace(about.st_dev, about.st_ino).second) files.push_back(file);
  }
  return files;
}

absl::Status OsMachine::Loads(const std::string& library) {
  const auto answer = InChild([&]() -> std::string {
    if (dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return "ok";
    const char* const why = dlerror();
    return why == nullptr ? "the loader gives no reason" : why;
  });
  if (!answer.ok()) return answer.status();
  if (*answer == "ok") return absl::OkStatus();
  return absl::FailedPreconditionError(answer->empty() ? "its process ended" : *answer);
}

absl::StatusOr<int> OsMachine::NcclVersion() {
  const auto answer = InChild([]() -> std::string {
    void* const library = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) return "none";
    auto* const get = reinterpret_cast<int (*)(int*)>(dlsym(library, "ncclGetVersion"));
    int version = 0;
    return get != nullptr && get(&version) == 0 ? absl::StrCat(version) : "it reports no version";
  });
  if (!answer.ok()) return absl::Status(answer.status().code(), absl::StrCat("libnccl.so.2: ", answer.status().message()));
  int version = 0;
  if (absl::SimpleAtoi(*answer, &version)) return version;
  if (*answer == "none") return absl::NotFoundError("the loader finds no libnccl.so.2 here; a framework may bring its own");
  return absl::UnknownError(absl::StrCat("libnccl.so.2: ", *answer));
}

}  // namespace r2cc::client
