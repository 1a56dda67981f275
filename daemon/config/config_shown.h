// A configuration as text again: what is in force, for people.
#ifndef R2CC_DAEMON_CONFIG_CONFIG_SHOWN_H_
#define R2CC_DAEMON_CONFIG_CONFIG_SHOWN_H_

#include <string>

#include "base/log.h"
#include "daemon/config/config.h"

namespace r2cc::daemon {

// The value of `log_level` for a level.
std::string SeverityName(Severity level);

// `config` as text format of DaemonConfig, also where it is what the files leave out. Read again, it is the same configuration but for what
// is a default because of something else (grants). Keys are named, never read.
std::string ShowConfig(const Config& config);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_CONFIG_CONFIG_SHOWN_H_
