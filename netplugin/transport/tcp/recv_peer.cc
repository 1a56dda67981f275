#include "netplugin/transport/tcp/recv_peer.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

namespace r2cc::net {
namespace {

using plan::EvidenceCause;

RecvSession::Options OptionsOf(const Io& io, const Hello& hello) {
  RecvSession::Options options;
  options.local_rails = static_cast<uint16_t>(io.rails.size());
  options.remote_rails = static_cast<uint16_t>(hello.rails.size());
  options.silence = io.silence;
  options.deadline = io.deadline;
  options.peer = hello.node;
  return options;
}

}  // namespace

RecvPeer::RecvPeer(Io* io, const Hello& hello, FlowOpened flow_opened)
    : Peer(io),
      flow_opened_(std::move(flow_opened)),
      peer_node_(hello.node),
      session_id_(hello.session),
      tag_(SessionTag(io->nonce, hello.session)),
      remote_rails_(hello.rails),
      session_(OptionsOf(*io, hello), io->Now()),
      links_(session_.links()) {
  ParseAddress(hello.oob_address, hello.oob_port, &peer_oob_);
  for (size_t rail = 0; rail < io->rails.size(); ++rail)
    if (!io->rails[rail].up) RailState(static_cast<uint16_t>(rail), false);
  ApplyVerdicts();
}

RecvPeer::~RecvPeer() { CloseAll(); }

void RecvPeer::CloseAll() {
  for (LinkId link = 0; link < links_.size(); ++link) CloseLink(link);
  oob_.Close();
  probe_.Stop();
}

void RecvPeer::CloseFlows() {
  while (!comms_.empty()) {
    comms_.begin()->second.comm->Fail(kCalledAfterTheEnd, false);
    Close(comms_.begin()->first);
  }
}

// ---- the job ----

void RecvPeer::Post(FlowId flow, void* data, uint64_t capacity_bytes) {
  if (comms_.contains(flow)) session_.Post(flow, data, capacity_bytes, now());
}

bool RecvPeer::Hot(FlowId flow) {
  const Receiving* const receiving = comms_.Find(flow);
  if (receiving == nullptr) return false;
  const auto [comm, link, socket] = *receiving;
  const size_t sockets = links_[link].bulk.size();
  // Small messages keep to the first socket; where there is bulk any may carry the next, and the last one does most likely.
  const size_t first = has_bulk() ? socket : 0;
  for (size_t i = 0; i < (has_bulk() ? sockets : std::min<size_t>(sockets, 1)); ++i) {
    const size_t index = (first + i) % sockets;
    Bulk& bulk = links_[link].bulk[index];
    if (bulk.receiver == nullptr || bulk.hire.on() || !ReadBulk(link, index)) continue;
    Found(&bulk);
    return true;
  }
  return false;
}

void RecvPeer::Close(FlowId flow) {
  RunInbox();
  if (!comms_.contains(flow)) return;
  for (LinkSockets& sockets : links_)
    for (Bulk& bulk : sockets.bulk)
      if (bulk.receiver != nullptr) {
        bulk.hire.Await();
        bulk.receiver->Forget(flow);
      }
  comms_.Erase(flow);
  session_.CloseFlow(flow, now());
  Settle();
}

void RecvPeer::OpenFlow(const Action& action) {
  Comm* comm = flow_opened_(action.flow, action.number);
  if (comm == nullptr) return session_.RefuseFlow(action.flow);
  *comms_.Add(action.flow) = {comm, action.link};
  session_.AcceptFlow(action.flow, action.link);
}

// ---- the world ----

void RecvPeer::RailState(uint16_t rail, bool up) { session_.LocalRail(rail, up, now()); }

void RecvPeer::ApplyVerdicts() {
  for (uint16_t rail = 0; rail < io_->rails.size(); ++rail)
    session_.LocalVerdict(rail, io_->verdict(io_->node, io_->rails[rail].nic).failed, now());
  for (uint16_t rail = 0; rail < remote_rails_.size(); ++rail)
    session_.RemoteVerdict(rail, io_->verdict(peer_node_, remote_rails_[rail].nic).failed, now());
  for (uint16_t rail = 0; rail < io_->rails.size(); ++rail)
    for (uint16_t remote = 0; remote < remote_rails_.size(); ++remote)
      session_.PathVerdict({rail, remote}, io_->path_broken(io_->rails[rail].nic, peer_node_, remote_rails_[remote].nic), now());
}

bool RecvPeer::Settle() {
  for (LinkId link = 0; unread_ && link < links_.size(); ++link)
    for (size_t i = 0; i < links_[link].bulk.size(); ++i)
      if (links_[link].bulk[i].more && !links_[link].bulk[i].hire.on()) ReadBulk(link, i);
  session_.Flush(now());
  while (session_.has_actions()) {
    for (const Action& action : session_.TakeActions()) Execute(action);
    FlushLanes();
    session_.Flush(now());
  }
  if (unread_) {
    unread_ = false;
    for (const LinkSockets& sockets : links_)
      for (const Bulk& bulk : sockets.bulk) unread_ |= bulk.more && !bulk.hire.on();
  }
  Publish();
  return unread_;
}

// A sender of small messages has copies of them, and credit. One that waits for a word is told in this turn: the next one may be long in
// coming.
bool RecvPeer::PublishFound() {
  if (unread_ || has_bulk() || session_.has_actions() || session_.awaited()) return false;
  Publish();
  return true;
}

void RecvPeer::Publish() {
  for (const FlowId flow : session_.TakeChanged()) {
    const Receiving* const receiving = comms_.Find(flow);
    if (receiving == nullptr) continue;
    Comm* const comm = receiving->comm;
    const MessageId placed = session_.PlacedThrough(flow);
    for (MessageId id = comm->done_through.load(std::memory_order_relaxed); id < placed; ++id)
      comm->sizes[id % kRequestsMax] = session_.SizeOf(flow, id);
    comm->done_through.store(placed, std::memory_order_release);
    if (!session_.error(flow).empty() && comm->state.load(std::memory_order_relaxed) != Comm::State::kFailed)
      comm->Fail(session_.error(flow), true);
  }
}

void RecvPeer::Execute(const Action& action) {
  switch (action.kind) {
    case Action::Kind::kSend: return SendFrame(action.lane, action.frame);
    case Action::Kind::kCloseLink: return CloseLink(action.link);
    case Action::Kind::kFlowOpened: return OpenFlow(action);
    case Action::Kind::kCloseOob: return oob_.Close();
    case Action::Kind::kProbePeer: return probe_.Start(io_->oob_source, peer_oob_, now());
    case Action::Kind::kWarn: return io_->log(LogLevel::kWarn, action.text);
    case Action::Kind::kOpenOob:
    case Action::Kind::kOpenLink:
    case Action::Kind::kProveLink:
    case Action::Kind::kLinkUp:
    case Action::Kind::kLinkSlow:
    case Action::Kind::kLinkFenced: return;  // an initiator's
  }
}

// ---- connections ----

bool RecvPeer::AttachOob(const Hello& hello, std::unique_ptr<PacketStream>* stream) {
  OobDown();
  peer_node_ = hello.node;
  if (hello.rails.size() == remote_rails_.size()) remote_rails_ = hello.rails;
  oob_.Open(&poller_, std::move(*stream), tag_, [this] { OobEvent(); });
  session_.OobUp(now());
  ApplyVerdicts();
  return true;
}

bool RecvPeer::AttachLink(const Hello& hello, std::unique_ptr<PacketStream>* stream, std::string* reason) {
  if (hello.link >= links_.size() || hello.sockets == 0 || hello.socket >= hello.sockets) {
    *reason = "no such link";
    return false;
  }
  const LinkId link = hello.link;
  if (!session_.Greet(link, hello.incarnation, hello.remote_rail, hello.local_rail, now())) {
    *reason = "this incarnation of the link has ended";
    return false;
  }
  Settle();  // closes the sockets of the incarnation before
  LinkSockets& sockets = links_[link];
  if (sockets.incarnation != hello.incarnation) {
    CloseLink(link);
    sockets.incarnation = hello.incarnation;
    sockets.bulk.resize(hello.sockets);
  }
  if (hello.kind == ConnectionKind::kControl) {
    if (sockets.control != nullptr) {
      *reason = "the link has its control lane already";
      return false;
    }
    sockets.control = std::make_unique<LaneSocket>();
    sockets.control->Open(&poller_, std::move(*stream), tag_, [this, link] { ControlEvent(link); });
    session_.LaneOpened(link, hello.incarnation, now());
    return true;
  }
  const size_t index = hello.socket;
  if (index >= sockets.bulk.size() || sockets.bulk[index].receiver != nullptr) {
    *reason = "the link has this bulk socket already";
    return false;
  }
  Bulk& bulk = sockets.bulk[index];
  bulk.receiver =
      std::make_unique<BulkReceiver>((*stream)->Release(), tag_, ProofPattern(session_id_, link, hello.incarnation, hello.socket));
  WatchBulk(link, index);
  return true;
}

void RecvPeer::OobDown() {
  oob_.Close();
  session_.OobDown(now());
}

void RecvPeer::CloseLink(LinkId link) {
  LinkSockets& sockets = links_[link];
  if (sockets.control != nullptr) sockets.control->Abandon();
  for (Bulk& bulk : sockets.bulk) {
    if (bulk.receiver == nullptr) continue;
    bulk.hire.End(io_->movers, bulk.receiver->fd());
    poller_.Remove(bulk.token, bulk.receiver->fd());
    bulk.receiver->Abandon();
  }
  sockets = LinkSockets{};
}

void RecvPeer::Trouble(LinkId link, EvidenceCause cause) { session_.LinkTrouble(link, links_[link].incarnation, cause, now()); }

void RecvPeer::OobEvent() {
  const auto state = oob_.Service([&](const Frame& frame) { session_.Receive(kOobLane, frame, now()); });
  if (state != PacketStream::State::kOpen) OobDown();
}

void RecvPeer::ControlEvent(LinkId link) {
  switch (links_[link].control->Service([&](const Frame& frame) { session_.Receive(link, frame, now()); })) {
    case PacketStream::State::kOpen: return;
    case PacketStream::State::kClosed: return Trouble(link, EvidenceCause::kSocketError);
    case PacketStream::State::kGarbled: return Trouble(link, EvidenceCause::kGarbled);
  }
}

void RecvPeer::SendFrame(Lane lane, const Frame& frame) {
  queued_ = true;
  if (lane == kOobLane)
    oob_.Queue(frame);
  else if (links_[lane].control != nullptr)
    links_[lane].control->Queue(frame);
}

void RecvPeer::FlushLanes() {
  if (!std::exchange(queued_, false)) return;
  if (!oob_.Flush()) OobDown();
  for (LinkId link = 0; link < links_.size(); ++link)
    if (links_[link].control != nullptr && !links_[link].control->Flush()) Trouble(link, EvidenceCause::kSocketError);
}

bool RecvPeer::flushed() const {
  return oob_.flushed() &&
         std::all_of(links_.begin(), links_.end(), [](const LinkSockets& s) { return s.control == nullptr || s.control->flushed(); });
}

void RecvPeer::HalfClose() {
  oob_.HalfClose();
  for (LinkSockets& sockets : links_)
    if (sockets.control != nullptr) sockets.control->HalfClose();
}

}  // namespace r2cc::net
