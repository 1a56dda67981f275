// Encodes the addresses of TCP rails, and the paths of a link, as bytes that only TCP reads.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_ENDPOINT_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_ENDPOINT_H_

#include <cstdint>
#include <optional>

#include "netplugin/link/frame.h"
#include "netplugin/transport/tcp/socket.h"

namespace r2cc::net {

// The address at which a rail listens.
Endpoint RailEndpointOf(const SocketAddress& address);
// Nothing if the bytes are not such an endpoint.
std::optional<SocketAddress> AddressOf(const Endpoint& endpoint);

// One connection of a link: its control channel, or one of its bulk sockets.
struct TcpPath {
  bool control = false;
  uint8_t socket = 0;   // the number of the bulk socket
  uint8_t sockets = 0;  // how many bulk sockets the link has
};
Endpoint PathEndpointOf(const TcpPath& path);
// Nothing if there is no such path.
std::optional<TcpPath> PathOf(const Endpoint& endpoint);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_ENDPOINT_H_
