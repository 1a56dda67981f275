#include "daemon/state/state_keeper.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace r2cc::daemon {
namespace {

// Files that were set aside; beyond that the last is replaced.
constexpr int kDamagedMax = 8;

std::string Folder(const std::string& path) { return path.substr(0, path.rfind('/')); }

}  // namespace

absl::StatusOr<SavedState> StateKeeper::Load(std::string* trouble) {
  const auto text = files_->Read(path_);
  if (absl::IsNotFound(text.status())) return SavedState();
  // Without permission, or of a disk with an error, it may be whole: it stays where it is.
  if (!text.ok() && !absl::IsInvalidArgument(text.status()))
    return absl::Status(text.status().code(),
                        absl::StrCat(text.status().message(), ": r2ccd does not start without the operator's drains and weights in it; ",
                                     absl::IsPermissionDenied(text.status())
                                         ? absl::StrCat("give it to r2ccd's user: chown --reference=", Folder(path_), " ", path_)
                                         : "mend the disk, or move the file away to start without them"));
  auto state = text.ok() ? DecodeState(*text, path_) : absl::StatusOr<SavedState>(text.status());
  if (state.ok()) return *std::move(state);
  // The first is the one that may hold operators' settings: a later one does not take its place.
  std::string aside = path_ + ".damaged";
  for (int number = 2; number <= kDamagedMax && files_->Read(aside).status().code() != absl::StatusCode::kNotFound; ++number)
    aside = absl::StrCat(path_, ".damaged.", number);
  const absl::Status moved = files_->Rename(path_, aside);
  *trouble = absl::StrCat(state.status().message(), "; ", moved.ok() ? "it is kept as " + aside : std::string(moved.message()),
                          ", and r2ccd starts without operators' settings: set drains, weights and drills again");
  return SavedState();
}

void StateKeeper::Save(const SavedState& state, Done done) {
  newest_ = EncodeState(state);
  Write(newest_, std::move(done));
}

void StateKeeper::Write(std::string text, Done done) {
  disk_->Post([this, files = files_, core = core_, path = path_, alive = alive_, text = std::move(text), done = std::move(done)]() mutable {
    const absl::Status status = files->WriteAtomically(path, text);
    core->Post([this, alive, status, text = std::move(text), done = std::move(done)] {
      if (!*alive) return;
      OnWritten(text, status);
      if (done) done(status);
    });
  });
}

void StateKeeper::OnWritten(const std::string& text, const absl::Status& status) {
  // What was written in the order of the saves is as old as reported here: a later one that fails is reported later.
  const bool turned = trouble_.ok() != status.ok();
  trouble_ = status;
  if (turned) on_turn_(status);
  if (status.ok()) {
    if (text == newest_ && retry_ != 0) core_->Cancel(std::exchange(retry_, 0));
  } else if (retry_ == 0) {
    retry_ = core_->RunAfter(kRetryInterval, [this] {
      retry_ = 0;
      Write(newest_, nullptr);
    });
  }
}

}  // namespace r2cc::daemon
