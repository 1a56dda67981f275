#include "netplugin/transport/verbs/verbs_port.h"

#include <algorithm>

#include "netplugin/transport/verbs/verbs_recv_link.h"
#include "netplugin/transport/verbs/verbs_send_link.h"

namespace r2cc::net::verbs {

std::shared_ptr<LinkHistory> VerbsPort::HistoryOf(LinkCore::End end, LinkId link) {
  auto& history = histories_[{end, link}];
  if (history == nullptr) history = std::make_shared<LinkHistory>();
  return history;
}

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

void VerbsPort::Remove(LinkCore* core) {
  std::erase_if(links_, [&](const Watched& watched) {
    if (watched.core != core) return false;
    // The control thread closes the descriptor, later.
    if (watched.token != 0) poller_.Remove(watched.token, watched.fd);
    return true;
  });
}

bool VerbsPort::Poll() {
  const auto now = links_;
  for (const Watched& watched : now) watched.core->Look();
  LookAtFlushes();
  if (!state_->jobs_thread) ArmAll();
  return true;
}

size_t VerbsPort::LookAtFlushes() {
  size_t ended = 0;
  for (VerbsRecvLink* const link : flushing_) ended += link->LookAtFlushes();
  return ended;
}

void VerbsPort::ArmAll() {
  for (Watched& watched : links_) {
    QueuePair* const pair = watched.core->pair();
    if (pair == nullptr || pair->completion_fd() < 0) continue;
    // Only its being readable counts: what it is about shows in the queue.
    if (watched.token == 0) {
      watched.fd = pair->completion_fd();
      watched.token = poller_.Add(watched.fd, EPOLLIN, [](uint32_t) {});
    }
    if (pair->Arm() != 0) watched.core->Trouble(plan::EvidenceCause::kLinkDown);
  }
  const auto now = links_;
  for (const Watched& watched : now) watched.core->Look();
}

}  // namespace r2cc::net::verbs
