#ifndef R2CC_DAEMON_RPC_RECONNECT_H_
#define R2CC_DAEMON_RPC_RECONNECT_H_

#include "base/core/back_off.h"
#include "base/core/clock.h"

namespace r2cc::daemon {

// Between two attempts to reach a peer or the store. They are made for ever: whoever is away may come back after hours, and is then
// reached within two seconds.
inline ExponentialBackOff ReconnectBackOff() { return {100 * kNanosPerMs, 2 * kNanosPerSecond}; }

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_RECONNECT_H_
