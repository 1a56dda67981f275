// Chooses the congestion control of the rails' connections. Pure.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_CONGESTION_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_CONGESTION_H_

#include <optional>
#include <string>

#include "base/core/function_ref.h"

namespace r2cc::net {

// The congestion control to set on a socket; empty: set none. `wanted`: as in PluginConfig::tcp_congestion; `system`: the default of new
// sockets; `has`: whether this process may use one of that name. Nothing, and one line in `error`, if `wanted` is unavailable.
//
// BBR suits no rail: to measure the delay it almost stops a busy connection for 0.2 s every 10 s, longer than a failover may take, and it
// paces segments with a kernel timer.
std::optional<std::string> RailCongestionControl(const std::string& wanted, const std::string& system,
                                                 FunctionRef<bool(const std::string& name)> has, std::string* error);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_CONGESTION_H_
