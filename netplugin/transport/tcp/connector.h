// Opens a connection, and waits until the other end has answered the greeting. With the peer's lock.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_CONNECTOR_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_CONNECTOR_H_

#include <functional>
#include <memory>

#include "netplugin/link/frame.h"
#include "netplugin/transport/os/poller.h"
#include "netplugin/transport/tcp/packet_stream.h"
#include "netplugin/transport/tcp/socket.h"

namespace r2cc::net {

class Connector {
 public:
  enum class Outcome {
    kReplied,  // `reply` has the answer; `stream` is the connection
    kRefused,  // no process listens there
    kBroken,   // no connection, or it broke
    kGarbled,  // the answer does not come from this plugin
  };
  // Called once; it may destroy the connector.
  using OnEnd = std::function<void(Outcome, const HelloReply& reply, std::unique_ptr<PacketStream> stream)>;

  // `fd` is connecting; `hello` is sent as soon as it is connected.
  Connector(Poller* poller, UniqueFd fd, Bytes hello, OnEnd on_end);
  // Hangs up if it has not ended.
  ~Connector();
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;

  // The other end's kernel has answered.
  bool connected() const { return connected_; }
  // -1 once it has ended.
  int fd() const { return stream_ == nullptr ? -1 : stream_->fd(); }

 private:
  void Event(uint32_t events);
  void End(Outcome outcome, const HelloReply& reply);

  Poller* const poller_;
  std::unique_ptr<PacketStream> stream_;
  const Bytes hello_;
  OnEnd on_end_;
  Poller::Token token_ = 0;
  bool connected_ = false;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_CONNECTOR_H_
