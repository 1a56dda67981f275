// Whether peers can reach what this node listens on.
#ifndef R2CC_DAEMON_IO_LISTEN_ADDRESS_H_
#define R2CC_DAEMON_IO_LISTEN_ADDRESS_H_

#include <string>

namespace r2cc::daemon {

// One line for a person if `host` is a name that leads this machine to itself alone, as Debian's /etc/hosts has it (127.0.1.1); empty
// otherwise. A loopback address that is written as one, and localhost, are meant. `address`: numeric, what the name is here; empty:
// nothing. Pure.
std::string LoopbackAlarm(const std::string& host, const std::string& address);

// The first address of `host`, numeric, as a listening socket takes it; empty: it has none. May ask a name server.
std::string FirstAddressOf(const std::string& host);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_IO_LISTEN_ADDRESS_H_
