#include "daemon/io/lock_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "daemon/io/file_id.h"
#include "daemon/io/folder_owner.h"

namespace r2cc::daemon {

absl::StatusOr<std::unique_ptr<LockFile>> LockFile::Take(const std::string& path, const std::string& what, const std::string& flag) {
  const int fd = OpenOrMakeFile(path, O_RDWR, 0600);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  // A process that may open it may hold the lock: nobody else, also if a former release gave it another mode.
  (void)fchmod(fd, 0600);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    char text[16] = {};
    const ssize_t got = pread(fd, text, sizeof(text) - 1, 0);
    close(fd);
    if (error != EWOULDBLOCK) return absl::ErrnoToStatus(error, absl::StrCat("cannot lock ", path));
    std::string pid;
    for (ssize_t i = 0; i < got && text[i] >= '0' && text[i] <= '9'; ++i) pid.push_back(text[i]);
    return absl::AlreadyExistsError(absl::StrCat(what, " is held by the r2ccd with pid ", pid.empty() ? "?" : pid,
                                                 ": stop that one first, or give this one another ", flag));
  }
  const std::string pid = absl::StrCat(getpid(), "\n");
  // For the message above alone: the lock does not depend on it.
  if (ftruncate(fd, 0) != 0 || pwrite(fd, pid.data(), pid.size(), 0) < 0) errno = 0;
  return std::unique_ptr<LockFile>(new LockFile(fd, path));
}

bool LockFile::IsAtPath() const {
  struct stat locked {};
  return fstat(fd_, &locked) == 0 && FileIdAt(path_) == FileIdOf(locked);
}

LockFile::~LockFile() { close(fd_); }

}  // namespace r2cc::daemon
