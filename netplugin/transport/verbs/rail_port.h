// Lists the RDMA ports among which rails find theirs (base/core/verbs/port_facts.h: PortOfInterface).
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_RAIL_PORT_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_RAIL_PORT_H_

#include <string>
#include <vector>

#include "netplugin/transport/verbs/verbs_types.h"

namespace r2cc::net::verbs {

// All ports of all devices. Opens each device for a moment. Devices that cannot be opened are left out, and one line in `*error` names each
// with the reason. MAY BLOCK.
std::vector<PortFacts> ListPorts(Verbs* verbs, std::string* error);

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_RAIL_PORT_H_
