// What a configuration that was read anew changes, and how much of it can be in force without a restart. Pure.
#ifndef R2CC_DAEMON_RELOAD_CONFIG_CHANGE_H_
#define R2CC_DAEMON_RELOAD_CONFIG_CHANGE_H_

#include <string>
#include <vector>

#include "daemon/config/config.h"

namespace r2cc::daemon {

struct ConfigChange {
  // What is in force from now on: the old one, with what a running daemon can take of the new one.
  Config config;
  // A line for people each.
  std::vector<std::string> applied;
  std::vector<std::string> needs_restart;
};

// Both are about one NIC in one place: what they say besides may differ without making another NIC of it.
bool SameNic(const NicSpec& a, const NicSpec& b);

// Peers, NICs without a cable, grants, drills, attach, limits and the log level are taken; everything else waits. Certificates are not a
// matter of this: whoever speaks follows their files.
ConfigChange Change(const Config& in_force, const Config& next);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RELOAD_CONFIG_CHANGE_H_
