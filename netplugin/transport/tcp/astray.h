// Connections that come in by another interface than that of the address they were made to.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_ASTRAY_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_ASTRAY_H_

#include <string>

namespace r2cc::net {

// A connection to an address of `interface` came in by the interface with the index `incoming`, 0 if that is not known: whether that is
// another one. A VRF that `interface` is in is none.
bool IsAstray(int incoming, const std::string& interface);

// For the log: why, and what to do. `address`, of `interface`, is the rail's; `incoming` the name of the other one. Pure.
std::string AstrayLine(const std::string& address, const std::string& interface, const std::string& incoming);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_ASTRAY_H_
