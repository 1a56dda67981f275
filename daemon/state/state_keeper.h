// Writes the state file from a thread of its own: a slow or full disk must not hold up a verdict.
#ifndef R2CC_DAEMON_STATE_STATE_KEEPER_H_
#define R2CC_DAEMON_STATE_STATE_KEEPER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "base/executor.h"
#include "daemon/io/files.h"
#include "daemon/state/saved_state.h"

namespace r2cc::daemon {

// The core's thread only.
class StateKeeper {
 public:
  // All outlive the keeper. `on_turn` is told, on the core's thread, when writing begins to fail and when it works again.
  StateKeeper(Files* files, Executor* disk, Executor* core, std::string path, std::function<void(const absl::Status&)> on_turn)
      : files_(files), disk_(disk), core_(core), path_(std::move(path)), on_turn_(std::move(on_turn)) {}
  ~StateKeeper() { *alive_ = false; }
  StateKeeper(const StateKeeper&) = delete;
  StateKeeper& operator=(const StateKeeper&) = delete;

  // What was saved; empty if nothing ever was. A file that cannot be read, or not be understood, is set aside as PATH.damaged and told in
  // `trouble`, one line: the daemon starts without it.
  SavedState Load(std::string* trouble);

  // Writes `state`; `done`, if any, comes when it is on the disk or cannot be written.
  void Save(const SavedState& state, std::function<void()> done);

 private:
  void OnWritten(const absl::Status& status);

  Files* const files_;
  Executor* const disk_;
  Executor* const core_;
  const std::string path_;
  const std::function<void(const absl::Status&)> on_turn_;
  bool failing_ = false;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_STATE_STATE_KEEPER_H_
