// What the environment says of a process's policy, as its peers have it.
#ifndef R2CC_NETPLUGIN_TRANSPORT_HOST_POLICY_H_
#define R2CC_NETPLUGIN_TRANSPORT_HOST_POLICY_H_

#include "netplugin/config/config.h"
#include "netplugin/transport/host.h"

namespace r2cc::net {

// Names, sizes, mode and times of `host`. Pure.
void SetPolicy(const Config& config, Host* host);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_HOST_POLICY_H_
