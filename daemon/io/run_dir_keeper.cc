#include "daemon/io/run_dir_keeper.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace r2cc::daemon {

RunDirKeeper::RunDirKeeper(Executor* executor, std::vector<Part> parts) : executor_(executor), parts_(std::move(parts)) { Arm(); }

void RunDirKeeper::Arm() {
  timer_ = executor_->RunAfter(executor_->UntilNext(kRunDirInterval), [this] {
    Look();
    Arm();
  });
}

void RunDirKeeper::Look() {
  std::string made;
  std::string trouble;
  for (const Part& part : parts_) {
    if (part.is_there()) continue;
    if (const absl::Status status = part.make(); !status.ok()) {
      trouble = absl::StrCat(part.name, ": ", status.message());
      break;
    }
    absl::StrAppend(&made, made.empty() ? "" : " ", part.name);
  }
  if (!made.empty())
    LogWarning("files of the run directory were deleted under r2ccd and are made again: keep what cleans up there away from it",
               {{"files", made}});
  if (!trouble.empty() && trouble != trouble_)
    LogError("files of the run directory were deleted under r2ccd and cannot be made again: jobs that start do not find it",
             {{"reason", trouble}});
  trouble_ = std::move(trouble);
}

}  // namespace r2cc::daemon
