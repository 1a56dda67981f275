#include "netplugin/transport/tcp/endpoint.h"

#include <cstring>
#include <string>

namespace r2cc::net {
namespace {

constexpr size_t kPortBytes = 2;
constexpr size_t kPathBytes = 3;

}  // namespace

Endpoint RailEndpointOf(const SocketAddress& address) {
  const std::string text = address.Text();
  const uint16_t port = address.port();
  Endpoint bytes(kPortBytes + text.size());
  std::memcpy(bytes.data(), &port, kPortBytes);
  std::memcpy(bytes.data() + kPortBytes, text.data(), text.size());
  return bytes;
}

std::optional<SocketAddress> AddressOf(const Endpoint& endpoint) {
  if (endpoint.size() <= kPortBytes) return std::nullopt;
  uint16_t port;
  std::memcpy(&port, endpoint.data(), kPortBytes);
  SocketAddress address;
  if (!ParseAddress(std::string(endpoint.begin() + kPortBytes, endpoint.end()), port, &address)) return std::nullopt;
  return address;
}

Endpoint PathEndpointOf(const TcpPath& path) { return {static_cast<uint8_t>(path.control), path.socket, path.sockets}; }

std::optional<TcpPath> PathOf(const Endpoint& endpoint) {
  if (endpoint.size() != kPathBytes || endpoint[0] > 1) return std::nullopt;
  const TcpPath path{endpoint[0] == 1, endpoint[1], endpoint[2]};
  if (path.sockets == 0 || path.socket >= path.sockets) return std::nullopt;
  return path;
}

}  // namespace r2cc::net
