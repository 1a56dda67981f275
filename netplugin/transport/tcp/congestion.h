// Which congestion control the connections of rails have. Pure.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_CONGESTION_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_CONGESTION_H_

#include <optional>
#include <string>

#include "base/core/function_ref.h"

namespace r2cc::net {

// What to ask a socket for, empty if for nothing. `wanted`: as in Config::tcp_congestion; `system`: what sockets have unasked;
// `has`: whether this process may have one of that name. None, and one line in `error`, if what is wanted cannot be had.
//
// BBR suits no rail: to measure the delay it all but stops a busy connection for 0.2 s every 10 s, longer than a failover may take, and
// it paces segments with a timer of the kernel's.
std::optional<std::string> RailCongestionControl(const std::string& wanted, const std::string& system,
                                                 FunctionRef<bool(const std::string& name)> has, std::string* error);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_CONGESTION_H_
