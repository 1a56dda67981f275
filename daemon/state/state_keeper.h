// Writes the state file from a thread of its own: a slow or full disk must not hold up a verdict.
#ifndef R2CC_DAEMON_STATE_STATE_KEEPER_H_
#define R2CC_DAEMON_STATE_STATE_KEEPER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/executor.h"
#include "daemon/io/files.h"
#include "daemon/state/saved_state.h"

namespace r2cc::daemon {

// The core's thread only.
class StateKeeper {
 public:
  // All outlive the keeper. `on_turn` is called, on the core's thread, when writing begins to fail and when it works again.
  StateKeeper(Files* files, Executor* disk, Executor* core, std::string path, std::function<void(const absl::Status&)> on_turn)
      : files_(files), disk_(disk), core_(core), path_(std::move(path)), on_turn_(std::move(on_turn)) {}
  ~StateKeeper() {
    *alive_ = false;
    if (retry_ != 0) core_->Cancel(retry_);
  }
  StateKeeper(const StateKeeper&) = delete;
  StateKeeper& operator=(const StateKeeper&) = delete;

  // Reads what was saved; empty if nothing ever was. A file that is not understood is set aside as PATH.damaged, which one line in
  // `trouble` reports: the daemon starts without it. A file that cannot be read (EACCES, EIO) is not damaged: it stays, and the error is
  // one line.
  absl::StatusOr<SavedState> Load(std::string* trouble);

  // How often what could not be written is tried again.
  static constexpr Nanos kRetryInterval = 5 * kNanosPerSecond;

  // Writes `state`; `done`, if any, comes when it is on the disk or could not be written, with the reason. That is tried again until it, or
  // what is saved later, is on the disk.
  using Done = std::function<void(const absl::Status& status)>;
  void Save(const SavedState& state, Done done);
  // Why the last state is not on the disk yet.
  const absl::Status& trouble() const { return trouble_; }

 private:
  void Write(std::string text, Done done);
  void OnWritten(const std::string& text, const absl::Status& status);

  Files* const files_;
  Executor* const disk_;
  Executor* const core_;
  const std::string path_;
  const std::function<void(const absl::Status&)> on_turn_;
  absl::Status trouble_;
  std::string newest_;  // of what was saved
  TimerId retry_ = 0;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_STATE_STATE_KEEPER_H_
