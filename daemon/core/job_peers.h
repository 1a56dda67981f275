// Whom the jobs of this node talk to.
#ifndef R2CC_DAEMON_CORE_JOB_PEERS_H_
#define R2CC_DAEMON_CORE_JOB_PEERS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace r2cc::daemon {

// The nodes that the jobs of each user (uid) communicate with. By user, because the daemon's work for jobs is shared among users: a user
// that names many nodes has its share spread over them.
using JobPeers = std::map<uint32_t, std::set<std::string>>;

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_CORE_JOB_PEERS_H_
