// Sets a process's policy from its environment.
#ifndef R2CC_NETPLUGIN_TRANSPORT_HOST_POLICY_H_
#define R2CC_NETPLUGIN_TRANSPORT_HOST_POLICY_H_

#include "netplugin/config/config.h"
#include "netplugin/transport/host.h"

namespace r2cc::net {

// Sets names, sizes, mode and times of `host`. Pure.
void SetPolicy(const PluginConfig& config, Host* host);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_HOST_POLICY_H_
