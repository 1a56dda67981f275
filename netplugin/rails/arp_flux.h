// Decides which rails of a shared network are used. Each interface of a Linux node answers ARP for all addresses of the node
// (arp_ignore=0). So packets to one address may come in by another interface, and packets without a routing rule leave by the first
// interface. Which rails work would then depend on which interface answers first. This is a fixed rule instead.
#ifndef R2CC_NETPLUGIN_RAILS_ARP_FLUX_H_
#define R2CC_NETPLUGIN_RAILS_ARP_FLUX_H_

#include <string>
#include <vector>

#include "netplugin/rails/host_network.h"
#include "netplugin/rails/rails.h"

namespace r2cc::net {

// For several rails in one IPv4 network, some of whose interfaces answer for others: a rail whose packets leave by its own interface gets
// any_route, because answers may come in by any. The others are `unused`; if that would be all, the first stays. A line in `warnings` if
// any is unused.
void SettleArpFlux(HostNetwork& host, std::vector<Rail>* rails, std::vector<std::string>* warnings);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_RAILS_ARP_FLUX_H_
