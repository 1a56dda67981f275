// Files in a map, with a disk that can be full.
#ifndef R2CC_DAEMON_IO_FAKE_FILES_H_
#define R2CC_DAEMON_IO_FAKE_FILES_H_

#include <map>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "daemon/io/files.h"

namespace r2cc::daemon {

class FakeFiles final : public Files {
 public:
  absl::StatusOr<std::string> Read(const std::string& path) override {
    absl::MutexLock lock(&mutex_);
    if (damaged_ == path) return !damage_.ok() ? damage_ : absl::DataLossError(absl::StrCat("cannot read ", path, ": Input/output error"));
    const auto found = files_.find(path);
    if (found == files_.end()) return absl::NotFoundError(absl::StrCat(path, ": no such file"));
    return found->second;
  }

  absl::Status WriteAtomically(const std::string& path, const std::string& contents) override {
    absl::MutexLock lock(&mutex_);
    ++writes_;
    if (full_) return absl::ResourceExhaustedError(absl::StrCat("cannot write ", path, ": No space left on device"));
    files_[path] = contents;
    return absl::OkStatus();
  }

  absl::Status Append(const std::string& path, const std::string& text) override {
    absl::MutexLock lock(&mutex_);
    if (full_) return absl::ResourceExhaustedError(absl::StrCat("cannot write ", path, ": No space left on device"));
    files_[path] += text;
    return absl::OkStatus();
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    absl::MutexLock lock(&mutex_);
    auto file = files_.extract(from);
    if (file.empty()) return absl::NotFoundError(absl::StrCat(from, ": no such file"));
    files_.insert_or_assign(to, std::move(file.mapped()));
    return absl::OkStatus();
  }

  // That file cannot be read any more: of an error of the disk, or for `why`.
  void Damage(const std::string& path, absl::Status why = absl::OkStatus()) {
    absl::MutexLock lock(&mutex_);
    damaged_ = path;
    damage_ = std::move(why);
  }

  // The disk is a new one.
  void Lose() {
    absl::MutexLock lock(&mutex_);
    files_.clear();
  }

  void SetFull(bool full) {
    absl::MutexLock lock(&mutex_);
    full_ = full;
  }

  int writes() const {
    absl::MutexLock lock(&mutex_);
    return writes_;
  }

 private:
  mutable absl::Mutex mutex_;
  std::map<std::string, std::string> files_ ABSL_GUARDED_BY(mutex_);
  std::string damaged_ ABSL_GUARDED_BY(mutex_);
  absl::Status damage_ ABSL_GUARDED_BY(mutex_);
  bool full_ ABSL_GUARDED_BY(mutex_) = false;
  int writes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_IO_FAKE_FILES_H_
