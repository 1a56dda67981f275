// Detects connections that come in by an interface other than that of the address they were made to.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_ASTRAY_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_ASTRAY_H_

#include <string>

namespace r2cc::net {

// A connection to an address of `interface` came in by the interface with the index `incoming`, 0 if unknown. True if that is another one.
// A VRF that contains `interface` does not count as another.
bool IsAstray(int incoming, const std::string& interface);

// The line for the log: the reason, and what to do. `address`, of `interface`, is the rail's; `incoming` is the name of the other
// interface. Pure.
std::string AstrayLine(const std::string& address, const std::string& interface, const std::string& incoming);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_ASTRAY_H_
