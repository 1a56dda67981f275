// The nodes with which the jobs of this node communicate.
#ifndef R2CC_DAEMON_CORE_JOB_PEERS_H_
#define R2CC_DAEMON_CORE_JOB_PEERS_H_

#include <map>
#include <set>
#include <string>

namespace r2cc::daemon {

// The nodes that the jobs of each share (JobProcess::share) communicate with. By share, because the daemon's work for jobs is divided among
// users and containers: one that names many nodes has its part spread over them.
using JobPeers = std::map<std::string, std::set<std::string>>;

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_CORE_JOB_PEERS_H_
