// Files that root makes in a folder of r2ccd's user: root may have started r2ccd by hand, and the service has to read them later.
#ifndef R2CC_DAEMON_IO_FOLDER_OWNER_H_
#define R2CC_DAEMON_IO_FOLDER_OWNER_H_

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace r2cc::daemon {

inline std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// Makes a file that is not there yet; -1 and errno if there is anything: a link in a folder of another user leads root nowhere. As root
// it gets the folder's owner and group.
inline int MakeFile(const std::string& path, int flags, mode_t mode) {
  const int fd = open(path.c_str(), flags | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  struct stat folder {};
  // Best effort: another user than root owns what it makes already.
  if (fd >= 0 && geteuid() == 0 && stat(FolderOf(path).c_str(), &folder) == 0 && folder.st_uid != 0 &&
      fchown(fd, folder.st_uid, folder.st_gid) != 0)
    errno = 0;
  return fd;
}

// Opens the file, or makes it.
inline int OpenOrMakeFile(const std::string& path, int flags, mode_t mode) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC);
  return fd >= 0 || errno != ENOENT ? fd : MakeFile(path, flags, mode);
}

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_IO_FOLDER_OWNER_H_
