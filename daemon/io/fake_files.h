// Files in a map, with a disk that can be full, and that loses its power in the midst of a change.
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
    const Torn torn = Change();
    if (torn == Torn::kHalf) files_[path + ".new"] = contents.substr(0, contents.size() / 2);
    if (torn == Torn::kAll) files_[path] = contents;
    return Result(path);
  }

  absl::Status Append(const std::string& path, const std::string& text) override {
    absl::MutexLock lock(&mutex_);
    if (full_) return absl::ResourceExhaustedError(absl::StrCat("cannot write ", path, ": No space left on device"));
    const Torn torn = Change();
    if (torn == Torn::kHalf) files_[path] += text.substr(0, text.size() / 2);
    if (torn == Torn::kAll) files_[path] += text;
    return Result(path);
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    absl::MutexLock lock(&mutex_);
    if (!files_.contains(from)) return absl::NotFoundError(absl::StrCat(from, ": no such file"));
    if (Change() == Torn::kAll) files_.insert_or_assign(to, std::move(files_.extract(from).mapped()));
    return Result(from);
  }

  // How much of a change is on the disk when the power goes. A half of a file that is to be replaced is next to it, and a half of a rename
  // is none.
  enum class Torn { kNothing, kHalf, kAll };
  // The power goes in the midst of a change, after `changes` whole ones. That change and all later ones fail, until it is on again.
  void CutPower(int changes, Torn torn) {
    absl::MutexLock lock(&mutex_);
    changes_left_ = changes;
    torn_ = torn;
  }
  bool power_is_off() const {
    absl::MutexLock lock(&mutex_);
    return off_;
  }
  void TurnPowerOn() {
    absl::MutexLock lock(&mutex_);
    off_ = false;
    changes_left_ = -1;
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
  // The part of the next change that takes place.
  Torn Change() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (off_) return Torn::kNothing;
    off_ = changes_left_ == 0;
    if (changes_left_ > 0) --changes_left_;
    return off_ ? torn_ : Torn::kAll;
  }
  absl::Status Result(const std::string& path) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return off_ ? absl::UnavailableError(absl::StrCat("cannot write ", path, ": the power is off")) : absl::OkStatus();
  }

  mutable absl::Mutex mutex_;
  std::map<std::string, std::string> files_ ABSL_GUARDED_BY(mutex_);
  std::string damaged_ ABSL_GUARDED_BY(mutex_);
  absl::Status damage_ ABSL_GUARDED_BY(mutex_);
  bool full_ ABSL_GUARDED_BY(mutex_) = false;
  int writes_ ABSL_GUARDED_BY(mutex_) = 0;
  int changes_left_ ABSL_GUARDED_BY(mutex_) = -1;  // until the power goes; -1: it stays
  Torn torn_ ABSL_GUARDED_BY(mutex_) = Torn::kNothing;
  bool off_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_IO_FAKE_FILES_H_
