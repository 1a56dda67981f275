// Reads the files of the configuration: the one of --config, and those in the directory next to it.
#ifndef R2CC_DAEMON_RELOAD_CONFIG_FILES_H_
#define R2CC_DAEMON_RELOAD_CONFIG_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/config/config.h"

namespace r2cc::daemon {

// More is a mistake, such as a directory of something else.
constexpr size_t kConfigFilesMax = 256;

// "/etc/r2cc/r2ccd.d" of "/etc/r2cc/r2ccd.textproto"; empty: the file has another ending, and no such directory.
std::string ConfigDirectory(const std::string& file);

// `file`, and then those of its directory with the same extension, sorted by name. The directory may be missing. May block. On
// failure one line that names the file.
absl::StatusOr<std::vector<ConfigText>> ReadConfigFiles(const std::string& file);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RELOAD_CONFIG_FILES_H_
