// Prints the result of `r2ccd --check_config`, for programs.
#ifndef R2CC_DAEMON_RELOAD_CHECKED_CONFIG_H_
#define R2CC_DAEMON_RELOAD_CHECKED_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/reload/config_loader.h"

namespace r2cc::daemon {

// A v1.CheckedConfig as JSON over several lines, ended by a newline. `file`: what was checked. An error of `loaded` has a line for each
// mistake.
std::string CheckedConfigAsJson(const std::string& file, const absl::StatusOr<LoadedConfig>& loaded,
                                const std::vector<std::string>& warnings);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RELOAD_CHECKED_CONFIG_H_
