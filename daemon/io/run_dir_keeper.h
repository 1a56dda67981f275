// Makes the files of the run directory again that somebody deleted under the running daemon: a cleaner of /run, mostly. Without them no
// job finds the daemon, and no operator.
#ifndef R2CC_DAEMON_IO_RUN_DIR_KEEPER_H_
#define R2CC_DAEMON_IO_RUN_DIR_KEEPER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/executor.h"

namespace r2cc::daemon {

constexpr Nanos kRunDirInterval = 2 * kNanosPerSecond;

// The executor's thread only. The executor outlives it.
class RunDirKeeper {
 public:
  struct Part {
    std::string name;
    std::function<bool()> is_there;
    std::function<absl::Status()> make;
  };
  // Looks every kRunDirInterval. The parts are made in this order, the lock first: a directory that another daemon has taken meanwhile is
  // left to that one. All parts that were made at one time are one warning.
  RunDirKeeper(Executor* executor, std::vector<Part> parts);
  ~RunDirKeeper() { executor_->Cancel(timer_); }
  RunDirKeeper(const RunDirKeeper&) = delete;
  RunDirKeeper& operator=(const RunDirKeeper&) = delete;

 private:
  void Look();
  void Arm();

  Executor* const executor_;
  const std::vector<Part> parts_;
  std::string trouble_;  // as reported
  TimerId timer_ = 0;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_IO_RUN_DIR_KEEPER_H_
