// Holds what a daemon keeps over restarts and reboots: the operator's settings, and the boot in which it ran. Pure.
#ifndef R2CC_DAEMON_STATE_SAVED_STATE_H_
#define R2CC_DAEMON_STATE_SAVED_STATE_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/core/clock.h"
#include "health/view/node_state.h"

namespace r2cc::daemon {

// Version of the format. A file of another version is not guessed at.
constexpr uint32_t kStateVersion = 1;
// Four times as many NICs as a node may have: NICs that the configuration does not name today keep their settings, but not without limit.
constexpr size_t kSettingsMax = 256;

// A drill in force is written at this interval: after a reboot nobody knows how long the machine was off, and up to this much of the drill
// may have passed unrecorded before.
constexpr Nanos kDrillSaveInterval = 10 * kNanosPerSecond;

struct SavedState {
  std::string boot_id;
  health::OperatorSettings settings;  // drill_until: how much of it was left
  Nanos boot_time = 0;                // CLOCK_BOOTTIME when it was written
  std::set<std::string> cabled = {};  // NICs whose link was up at some time

  friend bool operator==(const SavedState&, const SavedState&) = default;
};

// Text-format r2cc.v1.DaemonState.
std::string EncodeState(const SavedState& state);

// INVALID_ARGUMENT with one line that names `file` if it is garbled, or of another version.
absl::StatusOr<SavedState> DecodeState(const std::string& text, const std::string& file);

// The clocks of a moment: the one that policy thinks in, and the one that goes on while the daemon does not run.
struct BootMoment {
  std::string boot_id;
  Nanos boot_time = 0;
  Nanos monotonic = 0;
};

// The settings in force now; their drills end on the monotonic clock. Time in which the daemon did not run counts: within a boot by the
// boot's clock, which nobody sets; over a reboot the drill continues with what was left. `ended`: the NICs whose drills are over.
health::OperatorSettings Resume(const SavedState& saved, const BootMoment& now, std::vector<std::string>* ended);
// The reverse.
SavedState ToSave(health::OperatorSettings settings, const BootMoment& now);

// `saved` with the settings of the NICs in `known` replaced by `settings`. Those of NICs that the configuration does not name today stay,
// as far as there is room for them.
health::OperatorSettings MergeSettings(health::OperatorSettings saved, const std::vector<std::string>& known,
                                       const health::OperatorSettings& settings);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_STATE_SAVED_STATE_H_
