// Makes rails of RDMA ports that need no network interface. Pure.
#ifndef R2CC_NETPLUGIN_RAILS_PORT_RAILS_H_
#define R2CC_NETPLUGIN_RAILS_PORT_RAILS_H_

#include <span>
#include <string>
#include <vector>

#include "base/core/verbs/port_facts.h"
#include "netplugin/rails/host_network.h"
#include "netplugin/rails/rails.h"

namespace r2cc::net {

// "mlx5_0"; if the device has several ports, "mlx5_0:2".
std::string PortName(const verbs::PortFacts& port, std::span<const verbs::PortFacts> ports);

// The ports that `item` names, which may be a pattern (base/core/glob.h): the port of "mlx5_0:1", or all of the device "mlx5_0". Empty:
// there is no such device or port.
std::vector<verbs::PortFacts> PortsNamed(const std::string& item, std::span<const verbs::PortFacts> ports);

// A rail of the port alone.
Rail RailOfPort(const verbs::PortFacts& port, const std::string& name, HostNetwork& host);

// The ports that may be rails if R2CC_RAILS names none, including those that are down: without those that an item of `excluded` names, and
// without those of the interfaces in `taken`, which are rails themselves or must not be.
std::vector<verbs::PortFacts> FreePorts(const std::vector<const HostInterface*>& taken, std::span<const verbs::PortFacts> ports,
                                        std::span<const std::string> excluded);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_RAILS_PORT_RAILS_H_
