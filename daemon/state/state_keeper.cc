#include "daemon/state/state_keeper.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace r2cc::daemon {

SavedState StateKeeper::Load(std::string* trouble) {
  const auto text = files_->Read(path_);
  if (absl::IsNotFound(text.status())) return {};
  auto state = text.ok() ? DecodeState(*text, path_) : absl::StatusOr<SavedState>(text.status());
  if (state.ok()) return *std::move(state);
  const std::string aside = path_ + ".damaged";
  const absl::Status moved = files_->Rename(path_, aside);
  *trouble = absl::StrCat(state.status().message(), "; ", moved.ok() ? "it is kept as " + aside : std::string(moved.message()),
                          ", and r2ccd starts without the operator's words: say drains, weights and drills again");
  return {};
}

void StateKeeper::Save(const SavedState& state, std::function<void()> done) {
  disk_->Post(
      [this, files = files_, core = core_, path = path_, alive = alive_, text = EncodeState(state), done = std::move(done)]() mutable {
        const absl::Status status = files->WriteAtomically(path, text);
        core->Post([this, alive, status, done = std::move(done)] {
          if (!*alive) return;
          OnWritten(status);
          if (done) done();
        });
      });
}

void StateKeeper::OnWritten(const absl::Status& status) {
  if (std::exchange(failing_, !status.ok()) != !status.ok()) on_turn_(status);
}

}  // namespace r2cc::daemon
