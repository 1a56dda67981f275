#include "daemon/trust/service_user.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace r2cc::daemon {
namespace {

// In the child: an errno for each file, 0 where it can be read.
[[noreturn]] void Try(const passwd& user, const std::vector<std::string>& files, int out) {
  if (initgroups(user.pw_name, user.pw_gid) != 0 || setgid(user.pw_gid) != 0 || setuid(user.pw_uid) != 0) _exit(1);
  for (const std::string& file : files) {
    const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
    const int error = fd >= 0 ? 0 : errno;
    if (fd >= 0) close(fd);
    if (write(out, &error, sizeof(error)) != sizeof(error)) _exit(1);
  }
  _exit(0);
}

}  // namespace

std::vector<std::string> UnreadableFor(const std::string& user, const std::vector<std::string>& files) {
  const passwd* const entry = getpwnam(user.c_str());
  int ends[2];
  if (entry == nullptr || pipe2(ends, O_CLOEXEC) != 0) return {};
  const pid_t child = fork();
  if (child == 0) Try(*entry, files, ends[1]);
  close(ends[1]);
  std::vector<std::string> lines;
  for (const std::string& file : files) {
    int error = 0;
    if (child < 0 || read(ends[0], &error, sizeof(error)) != sizeof(error)) break;
    if (error != EACCES) continue;
    // A file that it may read lies in a directory that is closed.
    lines.push_back(absl::StrCat("user ", user, " cannot read ", file, ": ", strerror(error), "; chown ", user, ": ", file,
                                 " && chmod 400 ", file, ", and chmod 755 its directory"));
  }
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  return lines;
}

}  // namespace r2cc::daemon
