// Finds the rails of a job without R2CC_RAILS: those that an operator has named to this node's r2ccd.
#ifndef R2CC_NETPLUGIN_RAILS_DAEMON_RAILS_H_
#define R2CC_NETPLUGIN_RAILS_DAEMON_RAILS_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/core/verbs/port_facts.h"
#include "netplugin/rails/host_network.h"

namespace r2cc::net {

// The file next to the attach socket at `attach_socket` (base/core/rails_file.h); nothing if it does not exist or cannot be read, or if
// `attach_socket` is empty. Never waits.
std::optional<std::string> ReadRailsFile(const std::string& attach_socket);

// The value for R2CC_RAILS, from the file's `text`, for ResolveRails(). Empty: the file is of another network namespace, or invalid, or
// none of its rails is on this node. A rail that does not exist now is left out, with a line in `warnings`.
std::string DaemonRails(const std::string& text, HostNetwork& host, std::span<const verbs::PortFacts> ports,
                        std::vector<std::string>* warnings);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_RAILS_DAEMON_RAILS_H_
