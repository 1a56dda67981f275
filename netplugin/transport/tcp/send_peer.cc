#include "netplugin/transport/tcp/send_peer.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "netplugin/transport/tcp/record.h"

namespace r2cc::net {
namespace {

using plan::EvidenceCause;

constexpr Nanos kOobConnectLimit = 2 * kNanosPerSecond;

SendSession::Options OptionsOf(const Io& io, const SendPeer::Target& target) {
  SendSession::Options options;
  options.local_rails = static_cast<uint16_t>(io.rails.size());
  options.chunk_base_bytes = io.chunk_bytes;
  options.chunks_follow_rate = io.chunks_follow_rate;
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
  for (uint16_t rail = 0; rail < io->rails.size(); ++rail)
    if (!io->rails[rail].up) RailState(rail, false);
}

SendPeer::~SendPeer() { CloseAll(); }

void SendPeer::CloseAll() {
  for (SendLink& link : links_) link.Close(&poller_, io_->movers);
  CloseOob();
  probe_.Stop();
}

void SendPeer::CloseFlows() {
  while (!comms_.empty()) {
    comms_.begin()->second->Fail(kCalledAfterTheEnd, false);
    Close(comms_.begin()->first);
  }
}

// ---- the job ----

FlowId SendPeer::Open(uint64_t listen_id, uint16_t local_rail, Comm* comm) {
  const FlowId flow = session_.OpenFlow(listen_id, local_rail, now());
  *comms_.Add(flow) = comm;
  return flow;
}

void SendPeer::Post(FlowId flow, void* data, uint64_t bytes) {
  if (!comms_.contains(flow)) return;
  const bool sent = SendAtOnce(flow, data, bytes);
  // Nobody looks for acknowledgements while all messages are small: who sends on looks before the window is used up, and not on the way of
  // his message.
  if (session_.WindowLow(flow)) HearAnswers(flow);
  if (sent) return;
  const MessageId message = session_.Post(flow, data, bytes, now());
  const LinkId home = session_.home(flow);
  Stir(home);
  PumpHome(flow);
  // First it travels, then it is copied: the peer need not wait for that. No other link has seen it yet.
  const std::byte* copy = session_.Release(flow, message);
  if (copy != nullptr && home < links_.size()) links_[home].Rebase(flow, message, copy);
}

bool SendPeer::Hot(FlowId flow) {
  if (links_.empty() || !comms_.contains(flow)) return false;
  PumpHome(flow);
  HearAnswers(flow);
  return session_.has_changes();
}

// The flow's acknowledgements and grants come by the first lane that is up.
void SendPeer::HearAnswers(FlowId flow) {
  const LinkId home = session_.home(flow);
  for (size_t i = 0; i < links_.size(); ++i) {
    const auto link = static_cast<LinkId>((home + i) % links_.size());
    if (session_.link_state(link) == InitiatorState::kUp) return ControlEvent(link);
  }
}

void SendPeer::Close(FlowId flow) {
  RunInbox();
  if (!comms_.contains(flow)) return;
  const bool holds_buffers = session_.HoldsBuffers(flow);
  session_.CloseFlow(flow, now());
  // A half-sent chunk still reads NCCL's buffer: its link ends, and the other flows on it replay.
  const auto of_flow = [flow](const Chunk& chunk) { return chunk.flow == flow; };
  for (LinkId link = 0; holds_buffers && link < links_.size(); ++link) {
    links_[link].Await();
    if (links_[link].AnyUnsent(of_flow)) Trouble(link, EvidenceCause::kFlowClosed);
  }
  comms_.Erase(flow);
  Settle();
}

// ---- the world ----

void SendPeer::RailState(uint16_t rail, bool up) { session_.LocalRail(rail, up, now()); }

void SendPeer::ApplyVerdicts() {
  for (uint16_t rail = 0; rail < io_->rails.size(); ++rail)
    session_.LocalVerdict(rail, io_->verdict(io_->node, io_->rails[rail].nic), now());
  for (uint16_t rail = 0; rail < remote_rails_.size(); ++rail)
    session_.RemoteVerdict(rail, io_->verdict(peer_node_, remote_rails_[rail].nic), now());
  for (uint16_t rail = 0; rail < io_->rails.size(); ++rail)
    for (uint16_t remote = 0; remote < remote_rails_.size(); ++remote)
      session_.PathVerdict({rail, remote}, io_->path_broken(io_->rails[rail].nic, peer_node_, remote_rails_[remote].nic), now());
}

void SendPeer::Tick() {
  if (oob_call_ != nullptr && now() - oob_since_ >= kOobConnectLimit) {
    // Connected, it is the process that does not answer; else nobody does.
    OobDown(oob_call_->connected() ? Reach::kAnswers : Reach::kSilent);
  }
  probe_.Tick(now());
  SampleRates(now());
  session_.Tick(now());
  StirAll();
}

bool SendPeer::Settle() {
  // After a small message nothing is left but to say that it is done.
  if (!session_.has_actions() && !session_.ready() && !room_ && !queued_ && session_.spread() == spread_) {
    Publish();
    return false;
  }
  bool more = false;
  for (;;) {
    for (auto actions = session_.TakeActions(); !actions.empty(); actions = session_.TakeActions())
      for (const Action& action : actions) Execute(action);
    if (session_.spread() != spread_) LimitQueues();
    more = (session_.ready() || room_) && PumpAll();
    FlushLanes();
    if (!session_.has_actions()) break;
  }
  CallMovers();
  Publish();
  return more;
}

void SendPeer::Publish() {
  for (const FlowId flow : session_.TakeChanged()) {
    Comm* const* const found = comms_.Find(flow);
    if (found == nullptr) continue;
    Comm* const comm = *found;
    comm->done_through.store(session_.DoneThrough(flow), std::memory_order_release);
    const SendSession::FlowState state = session_.state(flow);
    auto opening = Comm::State::kOpening;
    if (state == SendSession::FlowState::kOpen) comm->state.compare_exchange_strong(opening, Comm::State::kOpen, std::memory_order_release);
    if (state == SendSession::FlowState::kFailed && comm->state.load(std::memory_order_relaxed) != Comm::State::kFailed)
      comm->Fail(session_.error(flow), true);
  }
}

void SendPeer::Execute(const Action& action) {
  const LinkId link = action.link;
  switch (action.kind) {
    case Action::Kind::kSend: return SendFrame(action.lane, action.frame);
    case Action::Kind::kOpenOob: return OpenOob();
    case Action::Kind::kCloseOob: return CloseOob();
    case Action::Kind::kLinkSlow: return RecordSlow(io_, action, Ends(link));
    case Action::Kind::kOpenLink: return OpenLink(link, action.incarnation);
    case Action::Kind::kProveLink: room_ = true; return links_[action.link].Prove(session_id_, action.link);
    case Action::Kind::kCloseLink: return links_[link].Close(&poller_, io_->movers);
    case Action::Kind::kLinkUp: return RecordUp(io_, action, Ends(link));
    case Action::Kind::kLinkFenced: return RecordFenced(io_, action, Ends(link));
    case Action::Kind::kWarn: return io_->log(LogLevel::kWarn, action.text);
    case Action::Kind::kProbePeer: return probe_.Start(io_->oob_source, target_.oob, now());
    case Action::Kind::kFlowOpened: return;  // an acceptor's
  }
}

LinkEnds SendPeer::Ends(LinkId link) const {
  return {session_.local_rail(link), peer_node_, remote_rails_[session_.remote_rail(link)].nic};
}

// ---- out-of-band lane ----

Hello SendPeer::MakeHello(ConnectionKind kind) const {
  Hello hello{.kind = kind, .nonce = target_.nonce, .target_process = target_.process, .session = session_id_};
  hello.process = io_->process;
  hello.node = io_->node;
  hello.oob_address = io_->oob_source.address.Text();
  hello.oob_port = io_->oob_port;
  if (kind == ConnectionKind::kOob) hello.rails = io_->RailInfos();
  return hello;
}

void SendPeer::OpenOob() {
  CloseOob();
  oob_since_ = now();
  int failure = 0;
  UniqueFd fd = Connect(io_->oob_source, target_.oob, SocketUse::kOob, &failure);
  if (!fd) return session_.OobDown(failure == ECONNREFUSED ? Reach::kRefused : Reach::kSilent, now());
  oob_call_ = std::make_unique<Call>(&poller_, std::move(fd), Encode(MakeHello(ConnectionKind::kOob)),
                                     [this](Call::Outcome outcome, const HelloReply& reply, std::unique_ptr<PacketStream> stream) {
                                       OobGreeted(outcome, reply, std::move(stream));
                                     });
}

void SendPeer::CloseOob() {
  oob_.Close();
  oob_call_.reset();
}

void SendPeer::OobDown(Reach reach) {
  CloseOob();
  session_.OobDown(reach, now());
}

void SendPeer::OobGreeted(Call::Outcome outcome, const HelloReply& reply, std::unique_ptr<PacketStream> stream) {
  if (outcome != Call::Outcome::kReplied) return OobDown(outcome == Call::Outcome::kRefused ? Reach::kRefused : Reach::kSilent);
  if (!reply.accepted) {
    io_->log(LogLevel::kWarn, "R2CC: " + target_.oob.Text() + " refuses us: " + reply.reason);
    return OobDown(Reach::kRefused);
  }
  // A peer's rails do not change their number; names, addresses and ports may, when it finds its daemon or a rail its address.
  const bool first = remote_rails_.empty();
  if (reply.rails.empty() || (!first && reply.rails.size() != remote_rails_.size())) return OobDown(Reach::kSilent);
  peer_node_ = reply.node;
  remote_rails_ = reply.rails;
  oob_.Open(&poller_, std::move(stream), tag_, [this] { OobEvent(); });
  oob_call_.reset();
  session_.OobUp(peer_node_, remote_rails_, now());
  links_.resize(session_.links());
  ApplyVerdicts();
}

void SendPeer::OobEvent() {
  StirAll();
  const auto state = oob_.Service([&](const Frame& frame) { session_.Receive(kOobLane, frame, now()); });
  if (state != PacketStream::State::kOpen) OobDown(Reach::kSilent);
}

// ---- links ----

void SendPeer::Trouble(LinkId link, EvidenceCause cause) { session_.LinkTrouble(link, links_[link].incarnation, cause, now()); }

void SendPeer::OpenLink(LinkId link, Incarnation incarnation) {
  SendLink& sockets = links_[link];
  sockets.Close(&poller_, io_->movers);
  sockets.incarnation = incarnation;
  const LocalRail& local = io_->rails[session_.local_rail(link)];
  const RailInfo& remote = remote_rails_[session_.remote_rail(link)];
  SocketAddress to;
  if (local.source.address.length == 0 || !ParseAddress(remote.address, remote.port, &to)) return Trouble(link, EvidenceCause::kLinkDown);
  Hello hello = MakeHello(ConnectionKind::kControl);
  hello.link = link;
  hello.local_rail = session_.local_rail(link);
  hello.remote_rail = session_.remote_rail(link);
  hello.incarnation = incarnation;
  hello.sockets = io_->sockets_per_rail;
  hello.links = session_.links();
  for (int i = -1; i < io_->sockets_per_rail; ++i) {
    hello.kind = i < 0 ? ConnectionKind::kControl : ConnectionKind::kBulk;
    hello.socket = static_cast<uint8_t>(std::max(i, 0));
    int failure = 0;
    UniqueFd fd = Connect(local.source, to, i < 0 ? SocketUse::kControl : SocketUse::kBulk, &failure);
    if (!fd) return Trouble(link, EvidenceCause::kSocketError);
    sockets.calls.push_back(
        std::make_unique<Call>(&poller_, std::move(fd), Encode(hello),
                               [this, link, i](Call::Outcome outcome, const HelloReply& reply, std::unique_ptr<PacketStream> stream) {
                                 if (outcome == Call::Outcome::kGarbled) return Trouble(link, EvidenceCause::kGarbled);
                                 if (outcome != Call::Outcome::kReplied) return Trouble(link, EvidenceCause::kSocketError);
                                 if (!reply.accepted) return Trouble(link, EvidenceCause::kPeerFenced);
                                 Greeted(link, i, std::move(stream));
                               }));
  }
  sockets.bulk.resize(io_->sockets_per_rail);
}

// `socket`: -1 is the control lane.
void SendPeer::Greeted(LinkId link, int socket, std::unique_ptr<PacketStream> stream) {
  SendLink& sockets = links_[link];
  if (socket < 0) {
    sockets.control = std::make_unique<LaneSocket>();
    sockets.control->Open(&poller_, std::move(stream), tag_, [this, link] { ControlEvent(link); });
  } else {
    const auto index = static_cast<size_t>(socket);
    SendLink::Bulk& bulk = sockets.bulk[index];
    bulk.sender = std::make_unique<BulkSender>(stream->Release(), tag_, io_->checksum);
    sockets.LimitQueue(*bulk.sender);
    // Edge-triggered: room is told of once, when it comes after the socket was full.
    bulk.token = poller_.Add(bulk.sender->fd(), EPOLLIN | EPOLLOUT | EPOLLET,
                             [this, link, index](uint32_t events) { BulkEvent(link, index, events); });
  }
  if (sockets.greeted()) session_.LinkConnected(link, sockets.incarnation, now());
}

void SendPeer::ControlEvent(LinkId link) {
  Stir(link);
  const auto state = links_[link].control->Service([&](const Frame& frame) { session_.Receive(link, frame, now()); });
  if (state == PacketStream::State::kOpen) return;
  Trouble(link, state == PacketStream::State::kGarbled ? EvidenceCause::kGarbled : EvidenceCause::kSocketError);
}

void SendPeer::SendFrame(Lane lane, const Frame& frame) {
  queued_ = true;
  if (lane == kOobLane)
    oob_.Queue(frame);
  else if (links_[lane].control != nullptr)
    links_[lane].control->Queue(frame);
}

void SendPeer::FlushLanes() {
  if (!std::exchange(queued_, false)) return;
  if (!oob_.Flush()) OobDown(Reach::kSilent);
  for (LinkId link = 0; link < links_.size(); ++link)
    if (links_[link].control != nullptr && !links_[link].control->Flush()) Trouble(link, EvidenceCause::kSocketError);
}

bool SendPeer::flushed() const {
  return oob_.flushed() &&
         std::all_of(links_.begin(), links_.end(), [](const SendLink& s) { return s.control == nullptr || s.control->flushed(); });
}

void SendPeer::HalfClose() {
  oob_.HalfClose();
  for (SendLink& sockets : links_)
    if (sockets.control != nullptr) sockets.control->HalfClose();
}

}  // namespace r2cc::net
