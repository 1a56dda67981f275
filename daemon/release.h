#ifndef R2CC_DAEMON_RELEASE_H_
#define R2CC_DAEMON_RELEASE_H_

namespace r2cc::daemon {

// The release in messages to other daemons and to the operator.
inline constexpr char kRelease[] = "0.1.0";

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RELEASE_H_
