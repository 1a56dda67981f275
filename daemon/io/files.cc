#include "daemon/io/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/core/unique_fd.h"
#include "daemon/io/folder_owner.h"

namespace r2cc::daemon {
namespace {

// Config and state are small; a larger file is not one of ours.
constexpr size_t kFileBytesMax = 16 << 20;

absl::Status Failed(const char* verb, const std::string& path, int error) {
  return absl::ErrnoToStatus(error, absl::StrCat("cannot ", verb, " ", path));
}

bool WriteAll(int fd, const std::string& contents) {
  size_t done = 0;
  while (done < contents.size()) {
    const ssize_t wrote = write(fd, contents.data() + done, contents.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return false;
    done += static_cast<size_t>(wrote);
  }
  return true;
}

// A name must be on the disk too. A file system that cannot sync a folder returns EINVAL: nothing more to be done there.
absl::Status SyncFolder(const std::string& path) {
  const std::string folder = FolderOf(path);
  UniqueFd directory(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0 || (fsync(directory.get()) != 0 && errno != EINVAL)) return Failed("sync", folder, errno);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> OsFiles::Read(const std::string& path) {
  UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  // Below what is no directory there is no file.
  if (file.get() < 0 && errno == ENOTDIR) return absl::NotFoundError(absl::StrCat("cannot read ", path, ": ", strerror(ENOTDIR)));
  if (file.get() < 0) return Failed("read", path, errno);
  std::string contents;
  char buffer[16384];
  for (;;) {
    const ssize_t got = read(file.get(), buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failed("read", path, errno);
    if (got == 0) return contents;
    contents.append(buffer, static_cast<size_t>(got));
    if (contents.size() > kFileBytesMax) return absl::InvalidArgumentError(absl::StrCat(path, ": larger than ", kFileBytesMax, " bytes"));
  }
}

absl::Status OsFiles::WriteAtomically(const std::string& path, const std::string& contents) {
  const std::string temporary = path + ".new";
  unlink(temporary.c_str());
  UniqueFd file(MakeFile(temporary, O_WRONLY, 0640));
  if (file.get() < 0) return Failed("write", temporary, errno);
  if (!WriteAll(file.get(), contents) || fsync(file.get()) != 0 || !file.Close()) {
    const int error = errno;
    unlink(temporary.c_str());
    return Failed("write", temporary, error);
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    unlink(temporary.c_str());
    return Failed("write", path, error);
  }
  return SyncFolder(path);
}

absl::Status OsFiles::Append(const std::string& path, const std::string& text) {
  const bool fresh = access(path.c_str(), F_OK) != 0;
  UniqueFd file(OpenOrMakeFile(path, O_WRONLY | O_APPEND, 0640));
  struct stat before {};
  if (file.get() < 0 || fstat(file.get(), &before) != 0) return Failed("write", path, errno);
  if (!WriteAll(file.get(), text) || fsync(file.get()) != 0) {
    const absl::Status status = Failed("write", path, errno);
    // By the descriptor: the path may name another file now.
    if (ftruncate(file.get(), before.st_size) == 0 || !S_ISREG(before.st_mode)) return status;
    return absl::Status(status.code(), absl::StrCat(status.message(), "; a part may be in it"));
  }
  return fresh ? SyncFolder(path) : absl::OkStatus();
}

absl::Status OsFiles::Rename(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0) return Failed("rename", from, errno);
  return SyncFolder(to);
}

}  // namespace r2cc::daemon
