// Whom the jobs of this node talk to.
#ifndef R2CC_DAEMON_CORE_JOB_PEERS_H_
#define R2CC_DAEMON_CORE_JOB_PEERS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace r2cc::daemon {

// The nodes that the jobs of each user (uid) talk to. By user, because what the daemon does for jobs is shared among users: whoever names
// many nodes has it spread over these.
using JobPeers = std::map<uint32_t, std::set<std::string>>;

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_CORE_JOB_PEERS_H_
