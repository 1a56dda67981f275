// Checks whether the service's user may read what root may.
#ifndef R2CC_DAEMON_TRUST_SERVICE_USER_H_
#define R2CC_DAEMON_TRUST_SERVICE_USER_H_

#include <string>
#include <vector>

namespace r2cc::daemon {

// The user of the package's unit.
constexpr char kServiceUser[] = "r2ccd";

// A line for each of `files` that `user` of this machine cannot read though it is there, with what ends that. Empty if there is no such
// user. Asks as that user in a process of its own: REQUIRES root, and no other thread.
std::vector<std::string> UnreadableFor(const std::string& user, const std::vector<std::string>& files);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_TRUST_SERVICE_USER_H_
