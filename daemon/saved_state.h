// What a daemon keeps over restarts: the operator's settings, and the boot that its epochs count from. Pure.
#ifndef R2CC_DAEMON_SAVED_STATE_H_
#define R2CC_DAEMON_SAVED_STATE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "health/view/node_state.h"

namespace r2cc::daemon {

struct SavedState {
  std::string boot_id;
  int64_t boot_time_s = 0;
  health::OperatorSettings settings;

  friend bool operator==(const SavedState&, const SavedState&) = default;
};

// Text-format r2cc.v1.DaemonState.
std::string EncodeState(const SavedState& state);

// INVALID_ARGUMENT with one line that names `file` if it is garbled.
absl::StatusOr<SavedState> DecodeState(const std::string& text, const std::string& file);

// The boot time for this life's epochs: the saved one within the same boot, else one that is later than the saved one. `computed_s`: what
// the clock says now.
int64_t ChooseBootTime(const SavedState& saved, const std::string& boot_id, int64_t computed_s);

// `saved` with the settings of the NICs in `known` replaced by `settings`. Those of NICs that the configuration does not name today stay.
health::OperatorSettings MergeSettings(health::OperatorSettings saved, const std::vector<std::string>& known,
                                       const health::OperatorSettings& settings);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_SAVED_STATE_H_
