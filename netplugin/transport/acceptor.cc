#include "netplugin/transport/acceptor.h"

#include <utility>

#include "base/core/version_range.h"
#include "netplugin/flow/mutant.h"
#include "netplugin/transport/bounce.h"

namespace r2cc::net {

// ---- listeners ----

void Acceptor::Open(uint64_t listen_id) {
  const MutexLock lock(mutex_);
  listeners_[listen_id];
}

std::unique_ptr<RecvComm> Acceptor::Accept(uint64_t listen_id) {
  const MutexLock lock(mutex_);
  const auto it = listeners_.find(listen_id);
  if (it == listeners_.end() || it->second.empty()) return nullptr;
  std::unique_ptr<RecvComm> comm = std::move(it->second.front());
  it->second.pop_front();
  return comm;
}

std::deque<std::unique_ptr<RecvComm>> Acceptor::Close(uint64_t listen_id) {
  const MutexLock lock(mutex_);
  const auto it = listeners_.find(listen_id);
  if (it == listeners_.end()) return {};
  auto unclaimed = std::move(it->second);
  listeners_.erase(it);
  return unclaimed;
}

Comm* Acceptor::FlowOpened(RecvPeer* peer, FlowId flow, uint64_t listen_id) {
  const MutexLock lock(mutex_);
  const auto it = listeners_.find(listen_id);
  if (it == listeners_.end()) return nullptr;
  auto comm = std::make_unique<RecvComm>(peer, flow);
  comm->state = Comm::State::kOpen;
  comm->bounce = NewBounce(host_->bounce, true);
  return it->second.emplace_back(std::move(comm)).get();
}

void Acceptor::RailsStalled(uint64_t process, RailPair rails) {
  for (const auto& [session, peer] : peers_) {
    if (peer->process() != process) continue;
    const PeerLock lock(*peer);
    peer->RailsStalled(rails);
    peer->RunToCompletion();
  }
}

// ---- greetings ----

std::string Acceptor::Judge(const Hello& hello) const {
  if (NegotiateVersion(hello.wire_least, hello.wire_newest) == 0)
    return "it uses wire version " + VersionRange(kWireVersionLeast, kWireVersion) + ", this process " +
           VersionRange(hello.wire_least, hello.wire_newest) + ": install releases next to each other";
  const bool former = hello.target_process != host_->process || hello.nonce != host_->nonce;
  if (former && !IsActive(Mutant::kFormerTarget)) return "the process that listened there has ended";
  if (hello.kind == ConnectionKind::kOob && hello.rails.empty()) return "a peer without rails";
  if (hello.kind != ConnectionKind::kOob && !peers_.contains(hello.session)) return "no such session";
  if (hello.kind != ConnectionKind::kOob && hello.remote_rail >= host_->rails.size()) return "no such rail";
  return "";
}

RecvPeer* Acceptor::PeerOf(const Hello& hello) {
  if (const auto it = peers_.find(hello.session); it != peers_.end()) return it->second.get();
  std::shared_ptr<RecvPeer>& peer = peers_[hello.session];
  peer = std::make_shared<RecvPeer>(host_, hello,
                                    [this, &peer](FlowId flow, uint64_t listen_id) { return FlowOpened(peer.get(), flow, listen_id); });
  on_peer_(hello.node);
  return peer.get();
}

HelloReply Acceptor::Greet(const Hello& hello, std::unique_ptr<Connection>* connection) {
  HelloReply reply;
  reply.wire_version = NegotiateVersion(hello.wire_least, hello.wire_newest);
  reply.reason = Judge(hello);
  if (!reply.reason.empty()) return reply;
  RecvPeer* peer = PeerOf(hello);
  const PeerLock lock(*peer);
  reply.accepted = true;
  reply.node = host_->node;
  if (hello.kind == ConnectionKind::kOob) {
    reply.rails = host_->RailInfos();
    reply.release = host_->release;
    peer->AttachOob(hello, reply, std::move(*connection));
    return reply;
  }
  std::string reason;
  if (!peer->AttachLink(hello, reply, connection, &reason)) {
    reply.accepted = false;
    reply.reason = reason;
  }
  return reply;
}

}  // namespace r2cc::net
