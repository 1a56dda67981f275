// Rails that share a network: each interface of a Linux node answers ARP for all addresses of the node (arp_ignore=0), so what is sent to
// one comes in by another, and what no rule sends elsewhere leaves by the first of them. Which of the rails work is then an accident of who
// answers first. Here it is a rule.
#ifndef R2CC_NETPLUGIN_RAILS_ARP_FLUX_H_
#define R2CC_NETPLUGIN_RAILS_ARP_FLUX_H_

#include <string>
#include <vector>

#include "netplugin/rails/host_network.h"
#include "netplugin/rails/rails.h"

namespace r2cc::net {

// Of several rails in one IPv4 network some of whose interfaces answer for others: one whose packets leave by its own interface gets
// any_route, as what comes back may come in by any; the others are `unused`, but for the first where there would be none. A line in
// `warnings` if any is unused.
void SettleArpFlux(HostNetwork& host, std::vector<Rail>* rails, std::vector<std::string>* warnings);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_RAILS_ARP_FLUX_H_
