#include "netplugin/transport/verbs/verbs_port.h"

#include "netplugin/transport/verbs/verbs_recv_link.h"
#include "netplugin/transport/verbs/verbs_send_link.h"

namespace r2cc::net::verbs {

std::unique_ptr<SendLink> VerbsPort::NewSend(const LinkName& name, SendOwner* owner, Counter* carried) {
  return std::make_unique<VerbsSendLink>(this, name, owner, carried);
}

std::unique_ptr<RecvLink> VerbsPort::NewRecv(const LinkName& name, RecvOwner* owner, Counter* carried) {
  return std::make_unique<VerbsRecvLink>(this, name, owner, carried);
}

std::unique_ptr<Connection> VerbsPort::Offered(const Endpoint& endpoint) {
  Offer offer;
  if (!Decode(endpoint, &offer)) return nullptr;
  return std::make_unique<VerbsConnection>(offer);
}

bool VerbsPort::Poll() {
  const auto now = cores_;
  for (LinkCore* const core : now) core->Look();
  return true;
}

}  // namespace r2cc::net::verbs
