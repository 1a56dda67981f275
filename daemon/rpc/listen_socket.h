// A listening TCP socket, and how the address of a client is written.
#ifndef R2CC_DAEMON_RPC_LISTEN_SOCKET_H_
#define R2CC_DAEMON_RPC_LISTEN_SOCKET_H_

#include <sys/socket.h>

#include <string>

#include "absl/status/statusor.h"

namespace r2cc::daemon {

// Listens on `listen`, host:port, without blocking; [::] takes IPv4, too. The caller owns the descriptor. On failure only the reason.
absl::StatusOr<int> ListenOn(const std::string& listen);

// The port of a socket's own end; 0: it has none.
int PortOf(int fd);

// "10.9.0.7:41234", "[fd00::7]:41234"; an IPv4 address that came by an IPv6 socket is written as the former.
std::string AddressText(const sockaddr_storage& address);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_LISTEN_SOCKET_H_
