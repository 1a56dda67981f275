// What a daemon keeps over restarts and reboots: the operator's words, and in which boot it ran. Pure.
#ifndef R2CC_DAEMON_SAVED_STATE_H_
#define R2CC_DAEMON_SAVED_STATE_H_

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "health/view/node_state.h"

namespace r2cc::daemon {

// Of the format. A file of another version is not guessed at.
constexpr uint32_t kStateVersion = 1;
// Four times as many NICs as a node may have: those that the configuration does not name today keep their words, and are not kept for ever.
constexpr size_t kWordsMax = 256;

struct SavedState {
  std::string boot_id;
  health::OperatorSettings settings;
  std::set<std::string> cabled = {};  // NICs whose link was up at some time

  friend bool operator==(const SavedState&, const SavedState&) = default;
};

// Text-format r2cc.v1.DaemonState.
std::string EncodeState(const SavedState& state);

// INVALID_ARGUMENT with one line that names `file` if it is garbled, or of another version.
absl::StatusOr<SavedState> DecodeState(const std::string& text, const std::string& file);

// `saved` with the settings of the NICs in `known` replaced by `settings`. Those of NICs that the configuration does not name today stay,
// as far as there is room for them.
health::OperatorSettings MergeSettings(health::OperatorSettings saved, const std::vector<std::string>& known,
                                       const health::OperatorSettings& settings);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_SAVED_STATE_H_
