// Makes the transport of a process's rails from the RDMA devices of this machine.
#ifndef R2CC_NETPLUGIN_PLUGIN_VERBS_RAILS_H_
#define R2CC_NETPLUGIN_PLUGIN_VERBS_RAILS_H_

#include <memory>
#include <string>
#include <vector>

#include "base/core/verbs/port_facts.h"
#include "netplugin/transport/rail_transports.h"

namespace r2cc::net {

struct RdmaPorts {
  std::vector<verbs::PortFacts> ports;  // those that may be rails
  std::string error;                    // one line: why there are none, or why some are missing
  bool has_devices = false;             // the machine has some, whether or not this process may use them
};
// MAY BLOCK.
RdmaPorts FindRdmaPorts();

// A MakeTransport. Null and one line in `error`: no library, or no device that can be opened.
std::unique_ptr<Transport> MakeVerbsRails(const TransportParts& parts, std::string* error);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_PLUGIN_VERBS_RAILS_H_
