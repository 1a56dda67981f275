// RDMA ports as rails that need no network interface: pure.
#ifndef R2CC_NETPLUGIN_RAILS_PORT_RAILS_H_
#define R2CC_NETPLUGIN_RAILS_PORT_RAILS_H_

#include <span>
#include <string>
#include <vector>

#include "base/core/verbs/port_facts.h"
#include "netplugin/rails/host_network.h"
#include "netplugin/rails/rails.h"

namespace r2cc::net {

// "mlx5_0"; where the device has several ports "mlx5_0:2".
std::string PortName(const verbs::PortFacts& port, std::span<const verbs::PortFacts> ports);

// What `item` names, which may be a pattern (base/core/glob.h): the port of "mlx5_0:1", or all of the device "mlx5_0". Nothing: there is no
// such device or port.
std::vector<verbs::PortFacts> PortsNamed(const std::string& item, std::span<const verbs::PortFacts> ports);

// A rail by itself.
Rail RailOfPort(const verbs::PortFacts& port, const std::string& name, HostNetwork& host);

// The ports that may be rails where nobody names any, those that are down too: not those that an item of `excluded` names, and none of the
// interfaces in `taken`, which are rails themselves or shall be none.
std::vector<verbs::PortFacts> FreePorts(const std::vector<const HostInterface*>& taken, std::span<const verbs::PortFacts> ports,
                                        std::span<const std::string> excluded);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_RAILS_PORT_RAILS_H_
