// Warns of a management interface among rails that were chosen automatically.
#ifndef R2CC_NETPLUGIN_RAILS_MANAGEMENT_H_
#define R2CC_NETPLUGIN_RAILS_MANAGEMENT_H_

#include <string>
#include <vector>

#include "netplugin/rails/host_network.h"
#include "netplugin/rails/rails.h"

namespace r2cc::net {

// A line about the rail by which packets to the rest of the world leave, if they leave by one of several rails whatever their source: it
// may be meant for management. "": there is none. `spec`: R2CC_RAILS.
std::string ManagementWarning(const std::string& spec, HostNetwork& host, const std::vector<Rail>& rails);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_RAILS_MANAGEMENT_H_
