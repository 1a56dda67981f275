#include "netplugin/transport/recv_peer.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "netplugin/flow/mutant.h"
#include "netplugin/flow/tuning.h"
#include "netplugin/transport/memory_table.h"
#include "netplugin/transport/record.h"

namespace r2cc::net {
namespace {

using plan::EvidenceCause;

// Of one link, sockets or offers that are told again: more than R2CC_SOCKETS_PER_RAIL and its control channel.
constexpr int kKeptOfLinkMost = 64;

RecvSession::Options OptionsOf(Host* host, const Hello& hello) {
  RecvSession::Options options;
  options.local_rails = static_cast<uint16_t>(host->rails.size());
  options.remote_rails = static_cast<uint16_t>(hello.rails.size());
  options.silence = host->silence;
  options.deadline = host->deadline;
  options.flow_slots = host->flow_slots();
  // Slots are for devices that place. An initiator without any picks its numbers as it likes.
  const auto places = [](const RailInfo& rail) {
    return std::any_of(rail.endpoints.begin(), rail.endpoints.end(),
                       [](const RailEndpoint& at) { return at.transport != TransportKind::kTcp; });
  };
  if (std::none_of(hello.rails.begin(), hello.rails.end(), places)) options.flow_slots = 0;
  options.peer = hello.node;
  options.memory = host->memory_ops;
  options.observer = host->acceptor_observer;
  return options;
}

}  // namespace

RecvPeer::RecvPeer(Host* host, const Hello& hello, OnFlowOpened on_flow_opened)
    : Peer(host, {hello.session, SessionTag(host->nonce, hello.session)}),
      on_flow_opened_(std::move(on_flow_opened)),
      process_(hello.process),
      peer_node_(hello.node),
      remote_rails_(hello.rails),
      peer_names_(hello.node, remote_rails_),
      session_(MakeOptions(host, hello), host->Now()),
      answers_closes_(hello.release == host->release),
      oob_(oob_port()->NewOob({hello.oob_address, hello.oob_port}, this)) {
  links_.Resize(session_.links().count());
  channels_.Resize(session_.links().count());
  RailsAnnounced(remote_rails_, peer_node_);
  for (size_t rail = 0; rail < host->rails.size(); ++rail)
    if (!host->rails[rail].up) RailState(static_cast<uint16_t>(rail), false);
  ApplyVerdicts();
}

RecvSession::Options RecvPeer::MakeOptions(Host* host, const Hello& hello) {
  RecvSession::Options options = OptionsOf(host, hello);
  options.gave_up = [this](Nanos lasted) {
    const std::string line = RecordGaveUp(host_, peer_node_, {}, {}, {}, lasted);
    const std::string ways = was_linked_ ? "" : TriedWays(*host_, nullptr, remote_rails_, host_->RailInfos());
    return ways.empty() ? line : line + "; tried by it: " + ways;
  };
  return options;
}

RecvPeer::~RecvPeer() { CloseAll(); }

void RecvPeer::CloseAll() {
  for (LinkId link = 0; link < links_.size(); ++link) {
    channels_.Set(link, nullptr);
    links_.Close(link);
  }
  kept_.clear();
  oob_->Close();
}

void RecvPeer::BreakFlows() noexcept {
  for (auto& [flow, receiving] : comms_) receiving.comm->Break();
}

void RecvPeer::CloseFlows() {
  for (; !comms_.empty(); Close(comms_.begin()->first)) comms_.begin()->second.comm->Fail(kCalledAfterTheEnd, false);
}

// ---- the job ----

void RecvPeer::Post(FlowId flow, const Buffer& to, uint64_t capacity_bytes) {
  if (!comms_.contains(flow)) return;
  if (to.memory != nullptr && session_.regions().GenerationOf(to.memory->id) == 0)
    if (const auto region = host_->memory->Find(to.memory->id); region != nullptr) session_.UseRegion(flow, region, now());
  session_.Post(flow, to, capacity_bytes, now());
}

bool RecvPeer::FastPath(FlowId flow) {
  const Receiving* const receiving = comms_.Find(flow);
  if (receiving == nullptr) return false;
  RecvLink* const link = links_.at(receiving->link);
  return link != nullptr && link->Poll(flow);
}

void RecvPeer::Close(FlowId flow) {
  RunInbox();
  if (!comms_.contains(flow)) return;
  // Noted while the session knows the flow's buffers: a link that is being closed for another reason may not have been given any.
  std::vector<RecvSession::Writer> writers;
  if (!IsActive(Mutant::kForgottenEarly)) {
    links_.ForEach([&](const LinkName& name, RecvLink& link) {
      if (!link.Forget(flow)) writers.push_back({name.link, name.incarnation, answers_closes_ && link.orders()});
    });
    for (const auto& slot : links_.closing())
      if (!slot.link->Forget(flow)) writers.push_back({slot.name.link, slot.name.incarnation});
  }
  comms_.Erase(flow);
  session_.CloseFlow(flow, writers, now());
  RunToCompletion();
}

void RecvPeer::OpenFlow(const SessionAction& action) {
  Comm* comm = on_flow_opened_(action.flow, action.number);
  if (comm == nullptr) return session_.RefuseFlow(action.flow);
  *comms_.Add(action.flow) = {comm, action.link};
  session_.AcceptFlow(action.flow, action.link);
}

// ---- the rails, the page, time ----

void RecvPeer::Regreet() {
  oob_->Close();
  session_.OobDown(now());
}

void RecvPeer::RailState(uint16_t rail, bool up) {
  session_.LocalRail(rail, up, now());
  if (!up) return;
  for (LinkId link = 0; link < session_.links().count(); ++link) {
    if (session_.links().local_rail(link) != rail) continue;
    for (const RailEndpoint& endpoint : remote_rails_[session_.links().remote_rail(link)].endpoints)
      if (Port* const of = port(endpoint.transport); of != nullptr && !endpoint.bytes.empty()) of->RailUp(rail, endpoint.bytes);
  }
}

void RecvPeer::ApplyVerdicts() {
  const PageView::Judgement judged = host_->page()->Judge(host_->names, peer_names_);
  const auto local_rails = static_cast<uint16_t>(judged.local.size()), remote_rails = static_cast<uint16_t>(judged.remote.size());
  for (uint16_t rail = 0; rail < local_rails; ++rail) session_.LocalVerdict(rail, judged.local[rail].failed, now());
  for (uint16_t rail = 0; rail < remote_rails; ++rail) session_.RemoteVerdict(rail, judged.remote[rail].failed, now());
  for (uint16_t rail = 0; rail < local_rails; ++rail)
    for (uint16_t remote = 0; remote < remote_rails; ++remote) session_.PathVerdict({rail, remote}, judged.IsBroken({rail, remote}), now());
}

void RecvPeer::OnTick() {
  oob_->Tick();
  was_linked_ = was_linked_ || has_link();
  std::erase_if(kept_, [this](const Kept& kept) R2CC_REQUIRES(mutex_) { return now() - kept.since >= tuning::kConnectionKeptMost; });
  session_.Tick(now());
}

// ---- what the session asks for ----

bool RecvPeer::RunToCompletion() {
  // A link that still has more says so again.
  if (std::exchange(unread_, false)) links_.ForEach([](const LinkName&, RecvLink& link) { link.ReadMore(); });
  for (const frames::LinkOffer& offer : std::exchange(offers_, {})) OnOffer(offer);
  session_.Flush(now());
  while (session_.has_actions()) {
    for (const SessionAction& action : session_.TakeActions()) Execute(action);
    FlushChannels();
    session_.Flush(now());
  }
  Publish();
  return unread_;
}

// A sender of small messages has copies of them, and credit. One that waits for an answer is told now: the next holder of the lock may be
// long in coming.
bool RecvPeer::PublishFound() {
  if (unread_ || !offers_.empty() || has_bulk() || session_.has_actions() || session_.flows().awaited()) return false;
  Publish();
  return true;
}

void RecvPeer::Publish() {
  for (const FlowId id : session_.TakeChanged()) {
    const Receiving* const receiving = comms_.Find(id);
    if (receiving == nullptr) continue;
    Comm* const comm = receiving->comm;
    const RecvFlows::Flow& flow = session_.flows().at(id);
    const MessageId placed = flow.ledger.placed_through();
    for (MessageId message = comm->done_through.load(std::memory_order_relaxed); message < placed; ++message)
      comm->sizes[message % kRequestsMax] = flow.ledger.SizeOf(message);
    comm->done_through.store(placed, std::memory_order_release);
    if (!flow.error.empty() && comm->state.load(std::memory_order_relaxed) != Comm::State::kFailed) comm->Fail(flow.error, true);
  }
}

void RecvPeer::Execute(const SessionAction& action) {
  switch (action.kind) {
    case SessionAction::Kind::kSend: return channels_.Queue(action.channel, action.frame);
    case SessionAction::Kind::kCloseLink: return CloseLink(action.link, action.incarnation);
    case SessionAction::Kind::kFlowOpened: return OpenFlow(action);
    case SessionAction::Kind::kCloseOob: return oob_->Close();
    case SessionAction::Kind::kProbePeer: return oob_->Probe(action.last_received);
    case SessionAction::Kind::kFlush: return Flush(action);
    case SessionAction::Kind::kWarn: return host_->log(LogLevel::kWarn, action.text);
    case SessionAction::Kind::kFailed: return RecordFailed(host_, peer_node_, action.number);
    case SessionAction::Kind::kOpenOob:
    case SessionAction::Kind::kOpenLink:
    case SessionAction::Kind::kProveLink:
    case SessionAction::Kind::kLinkUp:
    case SessionAction::Kind::kLinkSlow:
    case SessionAction::Kind::kLinkLost:
    case SessionAction::Kind::kLinkFenced:
    case SessionAction::Kind::kLinkPassed:
    case SessionAction::Kind::kLinkStalled:
    case SessionAction::Kind::kLinkRefused: return;  // an initiator's
  }
}

void RecvPeer::CloseLink(LinkId link, Incarnation incarnation) {
  const LinkName name = links_.at(link) != nullptr ? links_.name(link) : LinkName{.link = link, .incarnation = incarnation};
  channels_.Set(link, nullptr);
  if (links_.Close(link) || IsActive(Mutant::kCloseNotAwaited)) LinkClosed(name, true);
}

// A link that is being closed, or is another by now, has its chunks sent again.
void RecvPeer::Flush(const SessionAction& action) {
  if (links_.at(action.link) != nullptr && links_.name(action.link).incarnation == action.incarnation)
    links_.at(action.link)->Flush(action.flush, action.buffer);
}

void RecvPeer::FlushChannels() {
  channels_.Flush([this](ChannelId channel) {
    HasLock();
    if (channel != kOobChannel) return Trouble(links_.name(static_cast<LinkId>(channel)), EvidenceCause::kSocketError);
    oob_->Close();
    OobLost(ProbeResult::kSilent);
  });
}

// ---- connections ----

void RecvPeer::AttachOob(const Hello& hello, const HelloReply& reply, std::unique_ptr<Connection> connection) {
  Regreet();
  peer_node_ = hello.node;
  if (hello.rails.size() == remote_rails_.size()) remote_rails_ = hello.rails;
  peer_names_ = NamesOnPage(peer_node_, remote_rails_);
  RecordRelease(host_, peer_node_, hello.release, reply.wire_version, &logged_release_);
  oob_->Attach(std::move(connection), reply);
  session_.OobUp(now());
  ApplyVerdicts();
  RunToCompletion();
}

bool RecvPeer::AttachLink(const Hello& hello, const HelloReply& reply, std::unique_ptr<Connection>* connection, std::string* reason) {
  const bool taken = AttachGreeted(hello, reply, connection, reason);
  // That begins to close the incarnation before, and what it kept waiting is attached when it is closed.
  RunToCompletion();
  return taken;
}

bool RecvPeer::AttachGreeted(const Hello& hello, const HelloReply& reply, std::unique_ptr<Connection>* connection, std::string* reason) {
  const auto offer = session_.Greet(hello.link, hello.incarnation, hello.remote_rail, hello.local_rail, now());
  bool taken = true;
  switch (offer) {
    case RecvSession::Admission::kAccepted: taken = Attach(hello, reply, connection, reason); break;
    case RecvSession::Admission::kRefused:
      *reason = "this incarnation of the link has ended";
      taken = false;
      break;
    case RecvSession::Admission::kLater:
      std::erase_if(kept_, [&](const Kept& kept) { return kept.hello.link == hello.link && kept.hello.incarnation < hello.incarnation; });
      // One link after the other, each with its sockets: an honest initiator has no more under way.
      if (std::count_if(kept_.begin(), kept_.end(), [&](const Kept& kept) { return kept.hello.link == hello.link; }) >= kKeptOfLinkMost) {
        *reason = "too many connections of the link wait for the end of the incarnation before";
        taken = false;
        break;
      }
      kept_.push_back({hello, reply, std::move(*connection), now()});
      break;
  }
  return taken;
}

// A link is on the stack that may have to end for what is offered: it is judged when none is.
bool RecvPeer::TakeOffer(const Frame& frame) {
  const auto* const offer = std::get_if<frames::LinkOffer>(&frame);
  if (offer == nullptr) return false;
  offers_.push_back(*offer);
  return true;
}

void RecvPeer::OnOffer(const frames::LinkOffer& offer) {
  OfferedRails rails;
  Hello hello{.kind = ConnectionKind::kLink, .link = offer.link, .incarnation = offer.incarnation, .endpoint = offer.endpoint};
  std::string reason = "no such rail";
  std::unique_ptr<Connection> connection;
  if (RailsOf(offer.rails, &rails) && rails.remote < host_->rails.size()) {
    hello.local_rail = rails.local;
    hello.remote_rail = rails.remote;
    hello.transport = rails.transport;
    Port* const of = port(rails.transport);
    if (of != nullptr) connection = of->Offered(offer.endpoint);
    if (connection != nullptr && AttachGreeted(hello, {.accepted = true, .node = host_->node}, &connection, &reason)) return;
  }
  session_.SendAll(frames::LinkAnswer{.link = offer.link, .incarnation = offer.incarnation});
}

void RecvPeer::Answer(const LinkName& name, const Endpoint& endpoint) {
  session_.SendAll(frames::LinkAnswer{.link = name.link, .incarnation = name.incarnation, .ok = true, .endpoint = endpoint});
}

void RecvPeer::AttachKept(LinkId link) {
  if (links_.at(link) != nullptr) return;
  std::vector<Kept> waiting;
  for (auto it = kept_.begin(); it != kept_.end();) {
    if (it->hello.link != link) {
      ++it;
      continue;
    }
    waiting.push_back(std::move(*it));
    it = kept_.erase(it);
  }
  // Hanging up is refusal enough: the initiator tries again with its next incarnation.
  for (Kept& kept : waiting) {
    const Hello& hello = kept.hello;
    std::string reason;
    switch (session_.Greet(hello.link, hello.incarnation, hello.remote_rail, hello.local_rail, now())) {
      case RecvSession::Admission::kAccepted: Attach(hello, kept.reply, &kept.connection, &reason); break;
      case RecvSession::Admission::kRefused: break;
      case RecvSession::Admission::kLater: kept_.push_back(std::move(kept)); break;
    }
  }
}

bool RecvPeer::Attach(const Hello& hello, const HelloReply& reply, std::unique_ptr<Connection>* connection, std::string* reason) {
  const LinkId link = hello.link;
  const bool first = links_.at(link) == nullptr;
  if (first) {
    LocalRail& rail = host_->rails[hello.remote_rail];
    const LinkName name{link, hello.incarnation, hello.remote_rail, hello.local_rail, session_.links().is_home(link)};
    Port* const of = port(hello.transport);
    if (of == nullptr) {
      *reason = "this process does not use that transport";
      session_.LinkTrouble(link, hello.incarnation, EvidenceCause::kLinkDown, now());
      return false;
    }
    links_.Begin(name, of->NewRecv(name, this, &rail.received_bytes));
    channels_.Set(link, links_.at(link)->control());
  }
  bool control = false;
  if (!links_.at(link)->Attach(hello, reply, connection, &control, reason)) {
    // Nothing of it is here: the incarnation that was begun for it ends with it.
    if (first) session_.LinkTrouble(link, hello.incarnation, EvidenceCause::kGarbled, now());
    return false;
  }
  if (control) session_.ChannelOpened(link, hello.incarnation, now());
  return true;
}

// ---- links ----

void RecvPeer::LinkClosed(LinkName name, bool ok) {
  if (ok) links_.Closed(name);
  session_.LinkClosed(name.link, name.incarnation, ok, now());
  if (ok) AttachKept(name.link);
}

bool RecvPeer::Begin(const LinkName& name, const Chunk& header, std::byte** destination) {
  if (!session_.Begin(name.link, name.incarnation, header, destination)) return false;
  if (*destination != nullptr) Account(header.message_bytes);
  return true;
}

void RecvPeer::Finish(const LinkName& name, const Chunk& header) {
  session_.Finish(name.link, name.incarnation, header);
  if (Receiving* const receiving = comms_.Find(header.flow); receiving != nullptr) receiving->link = name.link;
}

bool RecvPeer::Placed(const LinkName& name, const Chunk& header) {
  switch (session_.Placed(name.link, name.incarnation, header)) {
    case RecvSession::Arrival::kRefused: return false;
    case RecvSession::Arrival::kLate:
      // It went into memory that is the job's again.
      host_->log(LogLevel::kWarn, "R2CC: peer " + peer_node_ + ", link " + std::to_string(name.link) + "/" +
                                      std::to_string(name.incarnation) + " wrote into message " + std::to_string(header.message) +
                                      " of flow " + std::to_string(header.flow) + " after it was done: the job's data cannot be trusted");
      std::abort();
    case RecvSession::Arrival::kPlaced: break;
  }
  Account(header.message_bytes);
  if (Receiving* const receiving = comms_.Find(header.flow); receiving != nullptr) receiving->link = name.link;
  return true;
}

}  // namespace r2cc::net
