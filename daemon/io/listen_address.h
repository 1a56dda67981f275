// Checks whether peers can reach the address on which this node listens.
#ifndef R2CC_DAEMON_IO_LISTEN_ADDRESS_H_
#define R2CC_DAEMON_IO_LISTEN_ADDRESS_H_

#include <string>

namespace r2cc::daemon {

// One line for a person if `host` is a name that means this machine only, as in Debian's /etc/hosts (127.0.1.1); empty otherwise. A
// loopback address as such, and localhost, are intended. `address`: numeric, the name's address here; empty: none. Pure.
std::string LoopbackAlarm(const std::string& host, const std::string& address);

// The first address of `host`, numeric, as a listening socket takes it; empty: it has none. May ask a name server.
std::string FirstAddressOf(const std::string& host);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_IO_LISTEN_ADDRESS_H_
