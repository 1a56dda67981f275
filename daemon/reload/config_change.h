// Compares a configuration that was read again with the one in force, and finds what can be in force without a restart. Pure.
#ifndef R2CC_DAEMON_RELOAD_CONFIG_CHANGE_H_
#define R2CC_DAEMON_RELOAD_CONFIG_CHANGE_H_

#include <string>
#include <vector>

#include "daemon/config/config.h"

namespace r2cc::daemon {

struct ConfigChange {
  // The configuration in force from now on: the old one, with the parts of the new one that a running daemon can take.
  Config config;
  // A line for people each.
  std::vector<std::string> applied;
  std::vector<std::string> needs_restart;
};

// Both describe one NIC in one place: their other fields may differ without making it another NIC.
bool SameNic(const NicSpec& a, const NicSpec& b);

// Peers, NICs without a cable, grants, drills, attach, limits and the log level are taken; everything else waits. Certificates are not part
// of this: their users follow the files.
ConfigChange Change(const Config& in_force, const Config& next);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RELOAD_CONFIG_CHANGE_H_
