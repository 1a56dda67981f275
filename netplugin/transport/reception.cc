#include "netplugin/transport/reception.h"

#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

namespace r2cc::net {

// ---- listeners ----

void Reception::Open(uint64_t listen_id) {
  const std::lock_guard lock(mutex_);
  listeners_[listen_id];
}

std::unique_ptr<RecvComm> Reception::Accept(uint64_t listen_id) {
  const std::lock_guard lock(mutex_);
  const auto it = listeners_.find(listen_id);
  if (it == listeners_.end() || it->second.empty()) return nullptr;
  std::unique_ptr<RecvComm> comm = std::move(it->second.front());
  it->second.pop_front();
  return comm;
}

std::deque<std::unique_ptr<RecvComm>> Reception::Close(uint64_t listen_id) {
  const std::lock_guard lock(mutex_);
  const auto it = listeners_.find(listen_id);
  if (it == listeners_.end()) return {};
  auto unclaimed = std::move(it->second);
  listeners_.erase(it);
  return unclaimed;
}

Comm* Reception::FlowOpened(RecvPeer* peer, FlowId flow, uint64_t listen_id) {
  const std::lock_guard lock(mutex_);
  const auto it = listeners_.find(listen_id);
  if (it == listeners_.end()) return nullptr;
  auto comm = std::make_unique<RecvComm>(peer, flow);
  comm->state = Comm::State::kOpen;
  return it->second.emplace_back(std::move(comm)).get();
}

// ---- greetings ----

std::string Reception::Judge(const Hello& hello) const {
  if (NegotiateVersion(hello.wire_least, hello.wire_newest) == 0)
    return "it speaks wire versions " + std::to_string(kWireVersionLeast) + " to " + std::to_string(kWireVersion) + ", we speak " +
           std::to_string(hello.wire_least) + " to " + std::to_string(hello.wire_newest) + ": install the same release on both nodes";
  if (hello.target_process != io_->process || hello.nonce != io_->nonce) return "the process that listened there has ended";
  if (hello.kind == ConnectionKind::kOob && hello.rails.empty()) return "a peer without rails";
  if (hello.kind != ConnectionKind::kOob && !peers_.contains(hello.session)) return "no such session";
  if (hello.kind != ConnectionKind::kOob && hello.remote_rail >= io_->rails.size()) return "no such rail";
  return "";
}

RecvPeer* Reception::PeerOf(const Hello& hello) {
  if (const auto it = peers_.find(hello.session); it != peers_.end()) return it->second.get();
  std::shared_ptr<RecvPeer>& peer = peers_[hello.session];
  peer = std::make_shared<RecvPeer>(io_, hello,
                                    [this, &peer](FlowId flow, uint64_t listen_id) { return FlowOpened(peer.get(), flow, listen_id); });
  on_peer_(hello.node);
  return peer.get();
}

// A node may answer on one rail for the address of another: what looks like a detour then is none. Rails of the same number are joined
// however the packets go.
bool Reception::CameInRightly(const Hello& hello, int fd) const {
  const LocalRail& rail = io_->rails[hello.remote_rail];
  if (hello.link < std::max(io_->rails.size(), peers_.at(hello.session)->remote_rails()) || rail.source.interface.empty()) return true;
  const int incoming = IncomingInterface(fd);
  return incoming == 0 || incoming == static_cast<int>(if_nametoindex(rail.source.interface.c_str()));
}

HelloReply Reception::Greet(const Hello& hello, std::unique_ptr<PacketStream>* stream) {
  HelloReply reply;
  reply.wire_version = NegotiateVersion(hello.wire_least, hello.wire_newest);
  reply.reason = Judge(hello);
  if (!reply.reason.empty()) return reply;
  RecvPeer* peer = PeerOf(hello);
  const auto turn = peer->TakeTurn();
  reply.accepted = true;
  reply.node = io_->node;
  if (hello.kind == ConnectionKind::kOob) {
    reply.rails = io_->RailInfos();
    Prepare((*stream)->fd(), SocketUse::kOob, "");
    // The reply is the first thing on the connection, before any frame.
    (*stream)->Send(Encode(reply));
    peer->AttachOob(hello, stream);
    return reply;
  }
  if (!CameInRightly(hello, (*stream)->fd())) {
    reply.accepted = false;
    reply.reason = "it came in by another interface than that of rail " + io_->rails[hello.remote_rail].name;
    return reply;
  }
  const SocketUse use = hello.kind == ConnectionKind::kControl ? SocketUse::kControl : SocketUse::kBulk;
  Prepare((*stream)->fd(), use, io_->rails[hello.remote_rail].source.interface);
  const Bytes accepted = Encode(reply);
  const auto sent = send((*stream)->fd(), accepted.data(), accepted.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  // Hanging up is refusal enough: the initiator tries again with its next incarnation.
  if (sent != static_cast<ssize_t>(accepted.size()) || !peer->AttachLink(hello, stream, &reply.reason)) stream->reset();
  return reply;
}

}  // namespace r2cc::net
