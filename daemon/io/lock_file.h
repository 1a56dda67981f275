// One daemon per run directory, and per state directory.
#ifndef R2CC_DAEMON_IO_LOCK_FILE_H_
#define R2CC_DAEMON_IO_LOCK_FILE_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace r2cc::daemon {

// Is held as long as the object, or the process, exists; a crash frees it.
class LockFile {
 public:
  // ALREADY_EXISTS with one line that names `what`, the process that holds the lock, and `flag`, by which one names another place.
  static absl::StatusOr<std::unique_ptr<LockFile>> Take(const std::string& path, const std::string& what, const std::string& flag);
  ~LockFile();
  // The file at the path is the locked one. Otherwise it was deleted, and another process may lock another file.
  bool IsAtPath() const;
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

 private:
  LockFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  const int fd_;
  const std::string path_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_IO_LOCK_FILE_H_
