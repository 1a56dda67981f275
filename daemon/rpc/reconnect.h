#ifndef R2CC_DAEMON_RPC_RECONNECT_H_
#define R2CC_DAEMON_RPC_RECONNECT_H_

#include "base/core/back_off.h"
#include "base/core/clock.h"

namespace r2cc::daemon {

// Back-off between two attempts to reach a peer or the store. Attempts never end: a peer that is away may come back after hours, and is
// then reached within two seconds.
inline ExponentialBackOff ReconnectBackOff() { return {100 * kNanosPerMs, 2 * kNanosPerSecond}; }

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_RECONNECT_H_
