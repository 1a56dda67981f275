// Whether what is at a path now is the file that was put there.
#ifndef R2CC_DAEMON_IO_FILE_ID_H_
#define R2CC_DAEMON_IO_FILE_ID_H_

#include <sys/stat.h>

#include <cstdint>
#include <string>

namespace r2cc::daemon {

struct FileId {
  uint64_t device = 0;
  uint64_t inode = 0;  // 0: there is none

  bool exists() const { return inode != 0; }
  friend bool operator==(const FileId&, const FileId&) = default;
};

inline FileId FileIdOf(const struct stat& file) { return {file.st_dev, file.st_ino}; }
inline FileId FileIdAt(const std::string& path) {
  struct stat file {};
  return stat(path.c_str(), &file) == 0 ? FileIdOf(file) : FileId();
}

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_IO_FILE_ID_H_
