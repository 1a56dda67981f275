// What a daemon keeps over restarts and reboots: the operator's settings, and in which boot it ran. Pure.
#ifndef R2CC_DAEMON_SAVED_STATE_H_
#define R2CC_DAEMON_SAVED_STATE_H_

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "health/view/node_state.h"

namespace r2cc::daemon {

struct SavedState {
  std::string boot_id;
  health::OperatorSettings settings;
  std::set<std::string> cabled = {};  // NICs whose link was up at some time

  friend bool operator==(const SavedState&, const SavedState&) = default;
};

// Text-format r2cc.v1.DaemonState.
std::string EncodeState(const SavedState& state);

// INVALID_ARGUMENT with one line that names `file` if it is garbled.
absl::StatusOr<SavedState> DecodeState(const std::string& text, const std::string& file);

// `saved` with the settings of the NICs in `known` replaced by `settings`. Those of NICs that the configuration does not name today stay.
health::OperatorSettings MergeSettings(health::OperatorSettings saved, const std::vector<std::string>& known,
                                       const health::OperatorSettings& settings);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_SAVED_STATE_H_
