#include "netplugin/transport/tcp/send_peer.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "netplugin/transport/tcp/record.h"

namespace r2cc::net {
namespace {

using plan::EvidenceCause;

// How many chunks leave before input is looked at again.
constexpr int kTurnChunks = 32;
constexpr Nanos kOobConnectLimit = 2 * kNanosPerSecond;
constexpr Nanos kSampleEvery = 25 * kNanosPerMs;

SendSession::Options OptionsOf(const Io& io, const SendPeer::Target& target) {
  SendSession::Options options;
  options.local_rails = static_cast<uint16_t>(io.rails.size());
  options.chunk_base_bytes = io.chunk_bytes;
  options.eager_bytes = io.eager_bytes;
  options.silence = io.silence;
  options.deadline = io.deadline;
  options.mode = io.mode;
  options.peer = target.oob.Text() + ":" + std::to_string(target.oob.port());
  return options;
}

}  // namespace

SendPeer::SendPeer(Io* io, const Target& target, uint64_t session)
    : Peer(io),
      target_(target),
      session_id_(session),
      tag_(SessionTag(target.nonce, session)),
      session_(OptionsOf(*io, target), io->Now()) {
  for (size_t rail = 0; rail < io->rails.size(); ++rail)
    if (!io->rails[rail].up) session_.LocalRail(static_cast<uint16_t>(rail), false, io->Now());
}

SendPeer::~SendPeer() { CloseAll(); }

void SendPeer::CloseAll() {
  for (LinkId link = 0; link < links_.size(); ++link) CloseLink(link);
  CloseOob();
  probe_.Stop();
  for (auto& [flow, comm] : comms_) comm->Fail("R2CC: called after the end of the process began", false);
}

// ---- the job ----

FlowId SendPeer::Open(uint64_t listen_id, uint16_t local_rail, Comm* comm) {
  const FlowId flow = session_.OpenFlow(listen_id, local_rail, io_->Now());
  comms_[flow] = comm;
  return flow;
}

void SendPeer::Post(FlowId flow, void* data, uint64_t bytes) {
  if (!comms_.contains(flow)) return;
  const MessageId message = session_.Post(flow, data, bytes, io_->Now());
  PumpHome(flow);
  // First it travels, then it is copied: the peer need not wait for that.
  const std::byte* copy = session_.Release(flow, message);
  if (copy == nullptr) return;
  for (LinkSockets& sockets : links_)
    for (Bulk& bulk : sockets.bulk)
      if (bulk.sender != nullptr) bulk.sender->Rebase(flow, message, copy);
}

bool SendPeer::Hot(FlowId flow) {
  if (links_.empty() || !comms_.contains(flow)) return false;
  PumpHome(flow);
  // Its acknowledgements and grants come here.
  const LinkId home = session_.home(flow);
  if (links_[home].control != nullptr) ControlEvent(home);
  return session_.has_changes();
}

void SendPeer::Close(FlowId flow) {
  RunInbox();
  const bool holds_buffers = session_.HoldsBuffers(flow);
  session_.CloseFlow(flow, io_->Now());
  // A half-sent chunk still reads NCCL's buffer: its link ends, and the other flows on it replay.
  for (LinkId link = 0; holds_buffers && link < links_.size(); ++link) {
    const auto reads = [flow](const Bulk& bulk) {
      return bulk.sender != nullptr && bulk.sender->AnyUnsent([flow](const Chunk& chunk) { return chunk.flow == flow; });
    };
    if (std::any_of(links_[link].bulk.begin(), links_[link].bulk.end(), reads)) Trouble(link, EvidenceCause::kFlowClosed);
  }
  comms_.erase(flow);
  Settle();
}

// ---- the world ----

void SendPeer::RailState(uint16_t rail, bool up) { session_.LocalRail(rail, up, io_->Now()); }

void SendPeer::ApplyVerdicts() {
  for (uint16_t rail = 0; rail < io_->rails.size(); ++rail)
    session_.LocalVerdict(rail, io_->verdict(io_->node, io_->rails[rail].nic), io_->Now());
  for (uint16_t rail = 0; rail < remote_rails_.size(); ++rail)
    session_.RemoteVerdict(rail, io_->verdict(peer_node_, remote_rails_[rail].nic), io_->Now());
}

void SendPeer::Tick() {
  const Nanos now = io_->Now();
  if (oob_greeting_ != nullptr && now - oob_since_ >= kOobConnectLimit) {
    // Connected, it is the process that does not answer; else nobody does.
    OobDown(oob_greeting_->connected ? Reach::kAnswers : Reach::kSilent);
  }
  probe_.Tick(now);
  SampleRates(now);
  session_.Tick(now);
}

void SendPeer::SampleRates(Nanos now) {
  if (now - sampled_ < kSampleEvery) return;
  sampled_ = now;
  for (LinkId link = 0; link < links_.size(); ++link) {
    if (session_.link_state(link) != InitiatorState::kUp) continue;
    Account all;
    for (const Bulk& bulk : links_[link].bulk) {
      const Account one = AccountOf(bulk.sender->fd());
      all.delivered_bytes += one.delivered_bytes;
      // Several sockets share the rail at the same time.
      all.busy_ns = std::max(all.busy_ns, one.busy_ns);
    }
    session_.LinkRate(link, links_[link].incarnation, all.delivered_bytes, all.busy_ns, now);
  }
}

// While flows keep to their own rails a full queue is good for speed; when chunks are dealt out a rail must not take more than it can
// carry.
void SendPeer::LimitQueues() {
  if (session_.spread() == spread_) return;
  spread_ = session_.spread();
  for (const LinkSockets& sockets : links_)
    for (const Bulk& bulk : sockets.bulk)
      if (bulk.sender != nullptr) LimitUnsent(bulk.sender->fd(), spread_);
}

bool SendPeer::Settle() {
  bool more = false;
  for (;;) {
    for (auto actions = session_.TakeActions(); !actions.empty(); actions = session_.TakeActions())
      for (const Action& action : actions) Execute(action);
    LimitQueues();
    more = (session_.ready() || room_) && PumpAll();
    FlushLanes();
    if (!session_.has_actions()) break;
  }
  Publish();
  return more;
}

bool SendPeer::PumpAll() {
  room_ = false;
  ready_.clear();
  for (LinkId link = 0; link < links_.size(); ++link)
    for (size_t i = 0; i < links_[link].bulk.size(); ++i)
      if (links_[link].bulk[i].sender != nullptr && !links_[link].bulk[i].blocked) ready_.emplace_back(link, i);
  for (int chunks = 0; chunks < kTurnChunks;) {
    if (ready_.empty()) return false;
    const auto next = std::min_element(ready_.begin(), ready_.end(),
                                       [this](const auto& a, const auto& b) { return session_.Load(a.first) < session_.Load(b.first); });
    if (PumpBulk(next->first, next->second))
      ++chunks;
    else
      ready_.erase(next);
  }
  room_ = true;
  return true;
}

void SendPeer::PumpHome(FlowId flow) {
  if (session_.spread()) return;
  const LinkId home = session_.home(flow);
  if (home >= links_.size()) return;
  for (size_t i = 0; i < links_[home].bulk.size(); ++i)
    for (int chunks = 0; chunks < kTurnChunks; ++chunks)
      // Trying is cheaper than asking the poller whether there is room again.
      if (links_[home].bulk[i].sender == nullptr || !PumpBulk(home, i)) break;
}

void SendPeer::Publish() {
  for (const FlowId flow : session_.TakeChanged()) {
    const auto it = comms_.find(flow);
    if (it == comms_.end()) continue;
    Comm* comm = it->second;
    comm->done_through.store(session_.DoneThrough(flow), std::memory_order_release);
    switch (session_.state(flow)) {
      case SendSession::FlowState::kOpening: break;
      case SendSession::FlowState::kOpen: {
        auto opening = Comm::State::kOpening;
        comm->state.compare_exchange_strong(opening, Comm::State::kOpen, std::memory_order_release);
        break;
      }
      case SendSession::FlowState::kFailed:
        if (comm->state.load(std::memory_order_relaxed) != Comm::State::kFailed) comm->Fail(session_.error(flow), true);
        break;
    }
  }
}

void SendPeer::Execute(const Action& action) {
  switch (action.kind) {
    case Action::Kind::kSend: return SendFrame(action.lane, action.frame);
    case Action::Kind::kOpenOob: return OpenOob();
    case Action::Kind::kCloseOob: return CloseOob();
    case Action::Kind::kLinkSlow: return ReportSlow(action);
    case Action::Kind::kOpenLink: return OpenLink(action.link, action.incarnation);
    case Action::Kind::kProveLink: return ProveLink(action.link);
    case Action::Kind::kCloseLink: return CloseLink(action.link);
    case Action::Kind::kLinkUp: return Report(action, plan::EvidenceKind::kLinkUp);
    case Action::Kind::kLinkFenced: return Report(action, plan::EvidenceKind::kLinkFenced);
    case Action::Kind::kWarn: return io_->log(LogLevel::kWarn, action.text);
    case Action::Kind::kProbePeer: return probe_.Start(io_->oob_source, target_.oob, io_->Now());
    case Action::Kind::kFlowOpened: return;  // an acceptor's
  }
}

std::string SendPeer::Describe(LinkId link) const {
  return io_->node + "/" + io_->rails[session_.local_rail(link)].nic + " -> " + peer_node_ + "/" +
         remote_rails_[session_.remote_rail(link)].nic;
}

void SendPeer::Report(const Action& action, plan::EvidenceKind kind) {
  if (action.report.cause == EvidenceCause::kRetired) {
    io_->log(LogLevel::kDebug, "R2CC: detour " + Describe(action.link) + " is not needed any more");
    return;
  }
  const uint16_t rail = session_.local_rail(action.link);
  io_->report(MakeRecord(kind, action, rail, io_->Now(), peer_node_, remote_rails_[session_.remote_rail(action.link)].nic));
  if (kind == plan::EvidenceKind::kLinkUp) {
    io_->log(LogLevel::kDebug, "R2CC: link " + Describe(action.link) + " is up, incarnation " + std::to_string(action.incarnation));
    return;
  }
  io_->rails[rail].replayed_bytes += action.report.replayed_bytes;
  io_->rails[rail].failovers += 1;
  io_->log(LogLevel::kInfo, "R2CC: link " + Describe(action.link) + " given up (" + plan::CauseName(action.report.cause) + "), " +
                                std::to_string(action.report.replayed_bytes) + " bytes replayed after " +
                                std::to_string(action.report.duration / 1000) + " us");
}

void SendPeer::ReportSlow(const Action& action) {
  const uint16_t rail = session_.local_rail(action.link);
  const bool slow = action.number < plan::kFullWeightPermille;
  auto record = MakeRecord(slow ? plan::EvidenceKind::kRailSlow : plan::EvidenceKind::kRailSteady, action, rail, io_->Now(), peer_node_,
                           remote_rails_[session_.remote_rail(action.link)].nic);
  record.share_permille = static_cast<uint32_t>(action.number);
  io_->report(record);
  io_->log(LogLevel::kInfo, "R2CC: link " + Describe(action.link) +
                                (slow ? " moves " + std::to_string(action.number / 10) + " % of what the best one does: its share follows"
                                      : " is as good as the others again"));
}

// ---- out-of-band lane ----

Hello SendPeer::MakeHello(ConnectionKind kind) const {
  Hello hello;
  hello.kind = kind;
  hello.nonce = target_.nonce;
  hello.target_process = target_.process;
  hello.session = session_id_;
  hello.process = io_->process;
  hello.node = io_->node;
  hello.oob_address = io_->oob_source.address.Text();
  hello.oob_port = io_->oob_port;
  if (kind == ConnectionKind::kOob) hello.rails = io_->RailInfos();
  return hello;
}

void SendPeer::OpenOob() {
  CloseOob();
  oob_since_ = io_->Now();
  int failure = 0;
  UniqueFd fd = Connect(io_->oob_source, target_.oob, SocketUse::kOob, &failure);
  if (!fd) return session_.OobDown(failure == ECONNREFUSED ? Reach::kRefused : Reach::kSilent, io_->Now());
  const int raw = fd.get();
  oob_greeting_ = std::make_unique<Connection>();
  oob_greeting_->stream = std::make_unique<PacketStream>(std::move(fd));
  oob_greeting_->token = poller_.Add(raw, EPOLLIN | EPOLLOUT, [this](uint32_t events) { GreetOobEvent(events); });
}

void SendPeer::CloseOob() {
  oob_.Close();
  if (oob_greeting_ == nullptr) return;
  poller_.Remove(oob_greeting_->token, oob_greeting_->stream->fd());
  oob_greeting_.reset();
}

void SendPeer::OobDown(Reach reach) {
  CloseOob();
  session_.OobDown(reach, io_->Now());
}

void SendPeer::GreetOobEvent(uint32_t events) {
  PacketStream& stream = *oob_greeting_->stream;
  if (!oob_greeting_->connected) {
    if (!(events & (EPOLLOUT | EPOLLERR | EPOLLHUP))) return;
    if (const int failure = ConnectResult(stream.fd()); failure != 0)
      return OobDown(failure == ECONNREFUSED ? Reach::kRefused : Reach::kSilent);
    oob_greeting_->connected = true;
    if (!stream.Send(Encode(MakeHello(ConnectionKind::kOob)))) return OobDown(Reach::kSilent);
    poller_.Modify(oob_greeting_->token, stream.fd(), EPOLLIN);
  }
  Bytes packet;
  bool whole = false;
  if (stream.ReadOne(&packet, &whole) != PacketStream::State::kOpen) return OobDown(Reach::kSilent);
  if (!whole) return;
  HelloReply reply;
  if (!Decode(packet, &reply)) return OobDown(Reach::kSilent);
  if (!reply.accepted) {
    io_->log(LogLevel::kWarn, "R2CC: " + target_.oob.Text() + " refuses us: " + reply.reason);
    return OobDown(Reach::kRefused);
  }
  // A peer's rails do not change their number; names, addresses and ports may, when it finds its daemon or a rail its address.
  const bool first = remote_rails_.empty();
  if (reply.rails.empty() || (!first && reply.rails.size() != remote_rails_.size())) return OobDown(Reach::kSilent);
  peer_node_ = reply.node;
  remote_rails_ = reply.rails;
  poller_.Remove(oob_greeting_->token, stream.fd());
  oob_.Open(&poller_, std::move(oob_greeting_->stream), tag_, [this] { OobEvent(); });
  oob_greeting_.reset();
  session_.OobUp(peer_node_, remote_rails_, io_->Now());
  links_.resize(session_.links());
  ApplyVerdicts();
}

void SendPeer::OobEvent() {
  const auto state = oob_.Service([&](const Frame& frame) { session_.Receive(kOobLane, frame, io_->Now()); });
  if (state != PacketStream::State::kOpen) OobDown(Reach::kSilent);
}

// ---- links ----

void SendPeer::Trouble(LinkId link, EvidenceCause cause) { session_.LinkTrouble(link, links_[link].incarnation, cause, io_->Now()); }

void SendPeer::OpenLink(LinkId link, Incarnation incarnation) {
  CloseLink(link);
  LinkSockets& sockets = links_[link];
  sockets.incarnation = incarnation;
  const LocalRail& local = io_->rails[session_.local_rail(link)];
  const RailInfo& remote = remote_rails_[session_.remote_rail(link)];
  SocketAddress to;
  if (local.source.address.length == 0 || !ParseAddress(remote.address, remote.port, &to)) return Trouble(link, EvidenceCause::kLinkDown);
  for (int i = -1; i < io_->sockets_per_rail; ++i) {
    auto connection = std::make_unique<Connection>();
    connection->kind = i < 0 ? ConnectionKind::kControl : ConnectionKind::kBulk;
    connection->socket = static_cast<uint8_t>(std::max(i, 0));
    int failure = 0;
    UniqueFd fd = Connect(local.source, to, i < 0 ? SocketUse::kControl : SocketUse::kBulk, &failure);
    if (!fd) return Trouble(link, EvidenceCause::kSocketError);
    const int raw = fd.get();
    connection->stream = std::make_unique<PacketStream>(std::move(fd));
    Connection* greeting = connection.get();
    connection->token = poller_.Add(raw, EPOLLIN | EPOLLOUT, [this, link, incarnation, greeting](uint32_t events) {
      if (!greeting->connected && !(events & (EPOLLOUT | EPOLLERR | EPOLLHUP))) return;
      GreetEvent(link, incarnation, greeting);
    });
    sockets.greeting.push_back(std::move(connection));
  }
  sockets.bulk.resize(io_->sockets_per_rail);
}

void SendPeer::CloseLink(LinkId link) {
  LinkSockets& sockets = links_[link];
  for (auto& connection : sockets.greeting) {
    if (connection->stream == nullptr) continue;
    poller_.Remove(connection->token, connection->stream->fd());
    connection->stream->Release().Abandon();
  }
  if (sockets.control != nullptr) sockets.control->Abandon();
  for (Bulk& bulk : sockets.bulk) {
    if (bulk.sender == nullptr) continue;
    poller_.Remove(bulk.token, bulk.sender->fd());
    bulk.sender->Abandon();
  }
  sockets = LinkSockets{.incarnation = sockets.incarnation};
}

void SendPeer::GreetEvent(LinkId link, Incarnation incarnation, Connection* connection) {
  if (!connection->connected) {
    if (ConnectResult(connection->stream->fd()) != 0) return Trouble(link, EvidenceCause::kSocketError);
    connection->connected = true;
    Hello hello = MakeHello(connection->kind);
    hello.link = link;
    hello.local_rail = session_.local_rail(link);
    hello.remote_rail = session_.remote_rail(link);
    hello.incarnation = incarnation;
    hello.socket = connection->socket;
    hello.sockets = io_->sockets_per_rail;
    hello.links = session_.links();
    if (!connection->stream->Send(Encode(hello))) return Trouble(link, EvidenceCause::kSocketError);
    poller_.Modify(connection->token, connection->stream->fd(), EPOLLIN);
  }
  Bytes packet;
  bool whole = false;
  if (connection->stream->ReadOne(&packet, &whole) != PacketStream::State::kOpen) return Trouble(link, EvidenceCause::kSocketError);
  if (!whole) return;
  HelloReply reply;
  if (!Decode(packet, &reply)) return Trouble(link, EvidenceCause::kGarbled);
  if (!reply.accepted) return Trouble(link, EvidenceCause::kPeerFenced);
  Greeted(link, connection);
}

void SendPeer::Greeted(LinkId link, Connection* connection) {
  LinkSockets& sockets = links_[link];
  poller_.Remove(connection->token, connection->stream->fd());
  if (connection->kind == ConnectionKind::kControl) {
    sockets.control = std::make_unique<LaneSocket>();
    sockets.control->Open(&poller_, std::move(connection->stream), tag_, [this, link] { ControlEvent(link); });
  } else {
    const size_t index = connection->socket;
    Bulk& bulk = sockets.bulk[index];
    bulk.sender = std::make_unique<BulkSender>(connection->stream->Release(), tag_, io_->checksum);
    LimitUnsent(bulk.sender->fd(), spread_);
    // Edge-triggered: room is told of once, when it comes after the socket was full.
    bulk.token = poller_.Add(bulk.sender->fd(), EPOLLIN | EPOLLOUT | EPOLLET,
                             [this, link, index](uint32_t events) { BulkEvent(link, index, events); });
    connection->stream.reset();
  }
  const bool all = sockets.control != nullptr &&
                   std::all_of(sockets.bulk.begin(), sockets.bulk.end(), [](const Bulk& bulk) { return bulk.sender != nullptr; });
  // The connections that were greeted live until the link closes: their handlers are gone, and one of them is running.
  if (all) session_.LinkConnected(link, sockets.incarnation, io_->Now());
}

void SendPeer::ControlEvent(LinkId link) {
  switch (links_[link].control->Service([&](const Frame& frame) { session_.Receive(link, frame, io_->Now()); })) {
    case PacketStream::State::kOpen: return;
    case PacketStream::State::kClosed: return Trouble(link, EvidenceCause::kSocketError);
    case PacketStream::State::kGarbled: return Trouble(link, EvidenceCause::kGarbled);
  }
}

void SendPeer::BulkEvent(LinkId link, size_t index, uint32_t events) {
  Bulk& bulk = links_[link].bulk[index];
  if (events & (EPOLLIN | EPOLLERR | EPOLLHUP)) {
    // Nothing is ever sent to us here: an end or an error is all there can be to read.
    char byte;
    const ssize_t n = recv(bulk.sender->fd(), &byte, 1, MSG_DONTWAIT);
    if (n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
      return Trouble(link, n > 0 ? EvidenceCause::kGarbled : EvidenceCause::kSocketError);
  }
  if (events & EPOLLOUT) {
    bulk.blocked = false;
    room_ = true;
  }
}

void SendPeer::ProveLink(LinkId link) {
  LinkSockets& sockets = links_[link];
  for (size_t i = 0; i < sockets.bulk.size(); ++i) {
    sockets.bulk[i].sender->SendProof(ProofPattern(session_id_, link, sockets.incarnation, static_cast<uint8_t>(i)));
    sockets.bulk[i].blocked = false;
  }
  room_ = true;
}

bool SendPeer::PumpBulk(LinkId link, size_t index) {
  LinkSockets& sockets = links_[link];
  Bulk& bulk = sockets.bulk[index];
  if (bulk.sender->AnyUnsent([this](const Chunk& chunk) { return !session_.Expects(chunk); })) {
    // Acknowledged before it was sent: the peer breaks the protocol, and the copy behind the chunk is gone.
    Trouble(link, EvidenceCause::kGarbled);
    bulk.blocked = true;
    return false;
  }
  const auto pull = [&](Chunk* chunk) { return session_.Pull(link, sockets.incarnation, chunk); };
  uint64_t sent_bytes = 0;
  const BulkSender::Result result = bulk.sender->Pump(pull, session_.spread() ? 1 : BulkSender::kTogetherMost, &sent_bytes);
  if (sent_bytes > 0) io_->rails[session_.local_rail(link)].sent_bytes += sent_bytes;
  if (result == BulkSender::Result::kBroken) Trouble(link, EvidenceCause::kSocketError);
  bulk.blocked = result == BulkSender::Result::kBlocked || result == BulkSender::Result::kBroken;
  return result == BulkSender::Result::kMore;
}

void SendPeer::SendFrame(Lane lane, const Frame& frame) {
  if (lane == kOobLane)
    oob_.Queue(frame);
  else if (links_[lane].control != nullptr)
    links_[lane].control->Queue(frame);
}

void SendPeer::FlushLanes() {
  if (!oob_.Flush()) OobDown(Reach::kSilent);
  for (LinkId link = 0; link < links_.size(); ++link)
    if (links_[link].control != nullptr && !links_[link].control->Flush()) Trouble(link, EvidenceCause::kSocketError);
}

bool SendPeer::flushed() const {
  return oob_.flushed() &&
         std::all_of(links_.begin(), links_.end(), [](const LinkSockets& s) { return s.control == nullptr || s.control->flushed(); });
}

void SendPeer::HalfClose() {
  oob_.HalfClose();
  for (LinkSockets& sockets : links_)
    if (sockets.control != nullptr) sockets.control->HalfClose();
}

}  // namespace r2cc::net
