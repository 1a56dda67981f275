#include "netplugin/transport/tcp/tcp_port.h"

#include <utility>

#include "netplugin/transport/tcp/endpoint.h"
#include "netplugin/transport/tcp/recv_link.h"
#include "netplugin/transport/tcp/send_link.h"
#include "netplugin/transport/tcp/tcp_oob.h"

namespace r2cc::net {

std::unique_ptr<SendLink> TcpPort::NewSend(const LinkName& name, SendOwner* owner, Counter* carried) {
  return std::make_unique<TcpSendLink>(this, name, owner, carried);
}

std::unique_ptr<RecvLink> TcpPort::NewRecv(const LinkName& name, RecvOwner* owner, Counter* carried) {
  return std::make_unique<TcpRecvLink>(this, name, owner, carried);
}

std::unique_ptr<Oob> TcpPort::NewOob(const OobAddress& peer, OobOwner* owner) { return std::make_unique<TcpOob>(this, peer, owner); }

bool TcpPort::Poll() {
  if (unwatched_)
    for (TcpRecvLink* const link : receivers_) link->ReadUnwatched();
  return poller_.Wait(0);
}

void TcpPort::WatchAll() {
  if (!std::exchange(unwatched_, false)) return;
  for (TcpRecvLink* const link : receivers_) link->WatchAll();
}

// Only this tells the peer's kernel of another hardware address under the same IP address.
void TcpPort::RailUp(uint16_t rail, const Endpoint& remote_rail) {
  if (const auto to = AddressOf(remote_rail)) GreetNeighbour(shared_->rails[rail], *to);
}

}  // namespace r2cc::net
