#include "netplugin/transport/tcp/tcp_port.h"

#include <net/if.h>

#include <utility>

#include "netplugin/transport/tcp/astray.h"
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

void TcpPort::Untie(uint16_t rail, int incoming) const {
  if (shared_->untied.exchange(true)) return;
  char name[IF_NAMESIZE] = "";
  const bool known = if_indextoname(static_cast<unsigned>(incoming), name) != nullptr;
  const Source& at = this->rail(rail);
  shared_->log(LogLevel::kWarn, AstrayLine(at.address.Text(), at.interface, known ? name : "another interface"));
}

// Only this tells the peer's kernel of another hardware address under the same IP address.
void TcpPort::RailUp(uint16_t rail, const Endpoint& remote_rail) {
  if (const auto to = AddressOf(remote_rail)) GreetNeighbour(source(rail), *to);
}

}  // namespace r2cc::net
