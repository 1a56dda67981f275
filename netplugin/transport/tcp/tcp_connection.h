// Holds a connection that has greeted this process, until its link takes it.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_TCP_CONNECTION_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_TCP_CONNECTION_H_

#include <memory>
#include <utility>

#include "netplugin/transport/links.h"
#include "netplugin/transport/tcp/packet_stream.h"

namespace r2cc::net {

class TcpConnection final : public Connection {
 public:
  explicit TcpConnection(std::unique_ptr<PacketStream> stream) : stream_(std::move(stream)) {}

  PacketStream& stream() { return *stream_; }
  std::unique_ptr<PacketStream> Take() { return std::move(stream_); }

 private:
  std::unique_ptr<PacketStream> stream_;
};

// Every connection over TCP comes from TCP's listeners.
inline TcpConnection& AsTcp(Connection& connection) { return static_cast<TcpConnection&>(connection); }

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_TCP_CONNECTION_H_
