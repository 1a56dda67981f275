// The few files that the daemon reads and writes.
#ifndef R2CC_DAEMON_IO_FILES_H_
#define R2CC_DAEMON_IO_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace r2cc::daemon {

// Thread-safe.
class Files {
 public:
  virtual ~Files() = default;

  // NOT_FOUND if there is no such file; otherwise one line that names it.
  virtual absl::StatusOr<std::string> Read(const std::string& path) = 0;

  // After success the file holds `contents`, also over a crash of the machine; after failure it holds what it held before.
  virtual absl::Status WriteAtomically(const std::string& path, const std::string& contents) = 0;

  // Adds `text` to the end of the file, which is made if there is none; after success it is there also after a crash of the machine. After
  // failure the file holds what it held before. A part of `text` may be at its end after a crash, or if the disk lets nobody cut the file.
  virtual absl::Status Append(const std::string& path, const std::string& text) = 0;

  // A file at `to` is replaced.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
};

class OsFiles final : public Files {
 public:
  absl::StatusOr<std::string> Read(const std::string& path) override;
  absl::Status WriteAtomically(const std::string& path, const std::string& contents) override;
  absl::Status Append(const std::string& path, const std::string& text) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_IO_FILES_H_
