// Runs a peer's out-of-band connection over TCP, and the probe of its address. With the peer's lock.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_TCP_OOB_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_TCP_OOB_H_

#include <memory>
#include <optional>

#include "base/core/clock.h"
#include "netplugin/transport/oob.h"
#include "netplugin/transport/probes.h"
#include "netplugin/transport/tcp/connector.h"
#include "netplugin/transport/tcp/control_socket.h"
#include "netplugin/transport/tcp/tcp_port.h"

namespace r2cc::net {

class TcpOob final : public Oob {
 public:
  // `peer` may be no valid address: then nothing can be opened or probed.
  TcpOob(TcpPort* port, const OobAddress& peer, OobOwner* owner);

  void Open(const Hello& hello) override;
  void Attach(std::unique_ptr<Connection> greeted, const HelloReply& reply) override;
  void Close() override;
  ControlChannel* control() override { return &control_; }
  void Probe(Nanos last_received) override;
  void Tick() override;

 private:
  void Greeted(Connector::Outcome outcome, const HelloReply& reply, std::unique_ptr<PacketStream> stream);
  void Lost(ProbeResult result);

  TcpPort* const port_;
  OobOwner* const owner_;
  const OobAddress address_;
  SocketAddress peer_;
  std::unique_ptr<Connector> connector_;
  Nanos connecting_since_ = 0;
  bool ungreeted_reported_ = false;
  ControlSocket control_;
  std::optional<Probes::Question> question_;  // not answered yet
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_TCP_OOB_H_
