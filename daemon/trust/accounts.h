// The grants of the configuration with its users and groups as this machine numbers them.
#ifndef R2CC_DAEMON_TRUST_ACCOUNTS_H_
#define R2CC_DAEMON_TRUST_ACCOUNTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/config/config.h"
#include "daemon/core/roles.h"

namespace r2cc::daemon {

// The group whose members have OPERATE if the configuration has no grants, if this machine has it.
constexpr char kOperatorsGroup[] = "r2cc";

// The number of kOperatorsGroup; -1: this machine has none. As ResolveGrants().
int64_t OperatorsGid();

// Asks the machine's user database, which may block. Thread-safe. One line that names the line of the file and the name if there is no such
// user or group.
absl::StatusOr<std::vector<Grant>> ResolveGrants(const Config& config);

// The callers that have fewer roles by `grants`, which ResolveGrants made of `config`, than by the defaults: a line each, with the way out.
std::vector<std::string> RolesLost(const Config& config, const std::vector<Grant>& grants);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_TRUST_ACCOUNTS_H_
