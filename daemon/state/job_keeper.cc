#include "daemon/state/job_keeper.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace r2cc::daemon {

v1::KeptJobs JobKeeper::Load(std::string* trouble) {
  const absl::StatusOr<std::string> text = files_->Read(path_);
  if (absl::IsNotFound(text.status())) return {};
  if (!text.ok()) {
    unreadable_ = true;
    *trouble = absl::StrCat(text.status().message(), "; reports of earlier jobs are missing, and new ones will not be kept");
    return {};
  }
  v1::KeptJobs jobs;
  std::string wrong;
  if (text->size() > kFileBytesMax || !jobs.ParseFromString(*text))
    wrong = "garbled";
  else if (jobs.version() != kVersion)
    wrong = absl::StrCat("written in format ", jobs.version(), " by another release; this one reads ", kVersion);
  if (wrong.empty()) return jobs;
  const std::string aside = path_ + ".damaged";
  const absl::Status moved = files_->Rename(path_, aside);
  *trouble = absl::StrCat(path_, ": ", wrong, "; ", moved.ok() ? "it is kept as " + aside : std::string(moved.message()),
                          ", and reports of earlier jobs are missing");
  return {};
}

void JobKeeper::Save(v1::KeptJobs jobs) {
  if (unreadable_) return;
  if (under_way_ >= kUnderWayMax) {
    next_ = std::move(jobs);
    return;
  }
  jobs.set_version(kVersion);
  ++under_way_;
  disk_->Post([this, alive = alive_, core = core_, files = files_, path = path_, jobs = std::move(jobs)] {
    const absl::Status status = files->WriteAtomically(path, jobs.SerializeAsString());
    core->Post([this, alive, status] {
      if (!*alive) return;
      --under_way_;
      if (std::exchange(failing_, !status.ok()) != !status.ok()) on_turn_(status);
      if (next_.has_value()) Save(*std::exchange(next_, std::nullopt));
    });
  });
}

}  // namespace r2cc::daemon
