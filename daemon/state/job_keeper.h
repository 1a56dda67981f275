// Keeps what jobs met over a restart of the daemon: a file in the state directory, written from a thread of its own.
#ifndef R2CC_DAEMON_STATE_JOB_KEEPER_H_
#define R2CC_DAEMON_STATE_JOB_KEEPER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "base/executor.h"
#include "daemon/io/files.h"
#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

// The core's thread only.
class JobKeeper {
 public:
  // Version of the format. A file of another version is not guessed at.
  static constexpr uint32_t kVersion = 1;
  // Far more than the registry keeps; a file that is larger is none of ours.
  static constexpr size_t kFileBytesMax = 64 << 20;

  // All outlive the keeper. `on_turn` is called on the core's thread when writing begins to fail and when it works again.
  JobKeeper(Files* files, Executor* disk, Executor* core, std::string path, std::function<void(const absl::Status&)> on_turn)
      : files_(files), disk_(disk), core_(core), path_(std::move(path)), on_turn_(std::move(on_turn)) {}
  ~JobKeeper() { *alive_ = false; }
  JobKeeper(const JobKeeper&) = delete;
  JobKeeper& operator=(const JobKeeper&) = delete;

  // The kept jobs; empty if there are none. A file that is not understood is renamed to PATH.damaged; one that cannot be read stays as it
  // is, and this run writes nothing over it. `trouble`: one line about either.
  v1::KeptJobs Load(std::string* trouble);

  // Takes effect some time later. While the disk does not answer only the newest waits. A state that cannot be written is written with the
  // next call: the caller calls it again within seconds.
  void Save(v1::KeptJobs jobs);

 private:
  Files* const files_;
  Executor* const disk_;
  Executor* const core_;
  const std::string path_;
  const std::function<void(const absl::Status&)> on_turn_;
  // Posted to the disk and not answered. One more than one, so that what is saved at the daemon's end is among them.
  static constexpr int kUnderWayMax = 2;
  int under_way_ = 0;
  std::optional<v1::KeptJobs> next_;
  bool unreadable_ = false;
  bool failing_ = false;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_STATE_JOB_KEEPER_H_
