// One configuration for many machines: what it names by a pattern or a network becomes what this machine has of it. Pure.
#ifndef R2CC_DAEMON_CONFIG_CONFIG_PATTERNS_H_
#define R2CC_DAEMON_CONFIG_CONFIG_PATTERNS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "daemon/config/config.h"

namespace r2cc::daemon {

// Puts the NICs that fit `config->nic_patterns` behind `config->nics`, and this machine's address into `config->listen` if it names a
// network. `addresses`: canonical, by interface; every interface of the machine is a key. An interface that another NIC has already is
// passed over. On failure one line: "FILE:LINE: ...", with what the machine has.
absl::Status FitToMachine(const std::map<std::string, std::vector<std::string>>& addresses, Config* config);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_CONFIG_CONFIG_PATTERNS_H_
