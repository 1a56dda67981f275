#include "netplugin/transport/send_peer.h"

#include <algorithm>
#include <utility>

#include "netplugin/flow/mutant.h"
#include "netplugin/flow/tuning.h"
#include "netplugin/link/transport_choice.h"

namespace r2cc::net {
namespace {

using plan::EvidenceCause;

SendSession::Options OptionsOf(const Host& host, const SendPeer::Target& target, uint64_t session) {
  SendSession::Options options;
  options.local_rails = static_cast<uint16_t>(host.rails.size());
  for (const RailInfo& rail : host.RailInfos()) options.local_transports.push_back(TransportsOf(rail));
  options.chunk_base_bytes = host.chunk_bytes;
  options.chunks_follow_rate = host.chunks_follow_rate;
  options.eager_bytes = host.eager_bytes;
  options.silence = host.silence;
  options.deadline = host.deadline;
  options.mode = host.mode;
  options.memory = host.memory_ops;
  options.flow_slots = host.flow_slots();
  options.retry_seed = session;
  options.all_links = target.all_links;
  options.peer = target.oob.host + ":" + std::to_string(target.oob.port);
  options.observer = host.initiator_observer;
  return options;
}

const Endpoint* EndpointOf(const std::vector<RailEndpoint>& endpoints, TransportKind kind) {
  for (const RailEndpoint& endpoint : endpoints)
    if (endpoint.transport == kind && !endpoint.bytes.empty()) return &endpoint.bytes;
  return nullptr;
}

}  // namespace

SendPeer::SendPeer(Host* host, const Target& target, uint64_t session)
    : Peer(host, {session, SessionTag(target.nonce, session)}),
      target_(target),
      session_id_(session),
      session_(MakeOptions(*host, target, session), host->Now()),
      oob_(oob_port()->NewOob(target.oob, this)) {
  for (uint16_t rail = 0; rail < host->rails.size(); ++rail)
    if (!host->rails[rail].up) RailState(rail, false);
}

SendSession::Options SendPeer::MakeOptions(const Host& host, const Target& target, uint64_t session) {
  SendSession::Options options = OptionsOf(host, target, session);
  options.gave_up = [this](std::span<const LinkFate> fates, Nanos lasted) {
    return RecordGaveUp(host_, peer_node_.empty() ? target_.oob.host : peer_node_, remote_rails_, peer_names_, fates, lasted) +
           (reach_.was_linked() ? "" : "; tried " + TriedWays());
  };
  return options;
}

SendPeer::~SendPeer() { CloseAll(); }

void SendPeer::CloseAll() {
  for (LinkId link = 0; link < links_.size(); ++link) {
    channels_.Set(link, nullptr);
    links_.Close(link);
  }
  oob_->Close();
}

void SendPeer::BreakFlows() noexcept {
  for (auto& [flow, comm] : comms_) comm->Break();
}

void SendPeer::CloseFlows() {
  while (!comms_.empty()) {
    comms_.begin()->second->Fail(kCalledAfterTheEnd, false);
    Close(comms_.begin()->first);
  }
}

// ---- the rails, the page, time ----

// The session opens it again, with a new greeting.
void SendPeer::Regreet() {
  if (remote_rails_.empty()) return;
  oob_->Close();
  session_.OobDown(ProbeResult::kSilent, now());
}

void SendPeer::RailState(uint16_t rail, bool up) { session_.LocalRail(rail, up, now()); }

void SendPeer::ApplyVerdicts() {
  const PageView::Judgement judged = host_->page()->Judge(host_->names, peer_names_);
  const auto local_rails = static_cast<uint16_t>(judged.local.size()), remote_rails = static_cast<uint16_t>(judged.remote.size());
  SendLinkInput& links = session_.link_input();
  for (uint16_t rail = 0; rail < local_rails; ++rail) links.LocalVerdict(rail, judged.local[rail], now());
  for (uint16_t rail = 0; rail < remote_rails; ++rail) links.RemoteVerdict(rail, judged.remote[rail], now());
  for (uint16_t rail = 0; rail < local_rails; ++rail)
    for (uint16_t remote = 0; remote < remote_rails; ++remote) links.PathVerdict({rail, remote}, judged.IsBroken({rail, remote}), now());
}

void SendPeer::OnTick() {
  oob_->Tick();
  WarnOfReach();
  std::erase_if(releasing_, [this](const Releasing& one) R2CC_REQUIRES(mutex_) {
    if (!links_.alive(one.name) || !links_.at(one.name.link)->Holds(one.flow)) return true;
    if (now() - one.since < tuning::kRetireMost) return false;
    Trouble(one.name, EvidenceCause::kFlowClosed);
    return true;
  });
  SampleRates(now());
  session_.Tick(now());
  const RailUse use = session_.links().Use(now());
  rails_up_.store(use.up, std::memory_order_relaxed);
  rails_lost_.store(use.lost, std::memory_order_relaxed);
  pump_.MarkAllDirty();
}

void SendPeer::WarnOfReach() {
  const auto missing = reach_.Tick(answered_, !remote_rails_.empty(), has_link(), now());
  if (missing && !session_.failed()) WarnNotReached(host_, *missing, peer_node_.empty() ? target_.oob.host : peer_node_, TriedWays());
}

void SendPeer::SampleRates(Nanos now) {
  if (now - sampled_ < tuning::kRateSampleEvery) return;
  sampled_ = now;
  const bool bulk = std::exchange(sampled_bulk_, has_bulk()) && has_bulk();
  links_.ForEach([&](const LinkName& name, SendLink& link) {
    const LinkFacts facts = link.Measure();
    session_.link_input().Progress(name.link, name.incarnation, facts.paths, now);
    session_.link_input().Rate(name.link, name.incarnation, facts.delivered_bytes, facts.busy, facts.limited, bulk, now);
  });
  pump_.Advise(true);
}

// ---- what the session asks for ----

bool SendPeer::RunToCompletion() {
  // After a small message nothing is left but to say that it is done.
  if (!session_.has_actions() && !session_.flows().ready() && !room_ && !channels_.queued() && !pump_.advice_is_due()) {
    Publish();
    return false;
  }
  bool more = false;
  for (;;) {
    for (auto actions = session_.TakeActions(); !actions.empty(); actions = session_.TakeActions())
      for (const SessionAction& action : actions) Execute(action);
    pump_.Advise(false);
    more = false;
    if (session_.flows().ready() || room_) {
      room_ = false;
      more = pump_.PumpAll(now());
      room_ |= more;
    }
    FlushChannels();
    if (!session_.has_actions()) break;
  }
  if (has_workers()) pump_.OfferToWorkers(now());
  Publish();
  return more;
}

void SendPeer::Publish() {
  using State = SendFlows::State;
  for (const FlowId id : session_.TakeChanged()) {
    Comm* const* const found = comms_.Find(id);
    if (found == nullptr) continue;
    Comm* const comm = *found;
    const SendFlows::Flow& flow = session_.flows().at(id);
    comm->done_through.store(flow.ledger.done_through(), std::memory_order_release);
    // Before the state, with which it is published.
    if (flow.opened) comm->opened.store(true, std::memory_order_relaxed);
    auto opening = Comm::State::kOpening;
    if (flow.state == State::kOpen) comm->state.compare_exchange_strong(opening, Comm::State::kOpen, std::memory_order_release);
    if (flow.state == State::kFailed && comm->state.load(std::memory_order_relaxed) != Comm::State::kFailed)
      comm->Fail(flow.error, flow.logged);
  }
}

void SendPeer::Execute(const SessionAction& action) {
  const LinkId link = action.link;
  switch (action.kind) {
    case SessionAction::Kind::kSend: return channels_.Queue(action.channel, action.frame);
    case SessionAction::Kind::kOpenOob: return oob_->Open(MakeHello(ConnectionKind::kOob));
    case SessionAction::Kind::kCloseOob: return oob_->Close();
    case SessionAction::Kind::kProbePeer: return oob_->Probe(action.last_received);
    case SessionAction::Kind::kOpenLink: return OpenLink(link, action.incarnation);
    case SessionAction::Kind::kProveLink:
      if (links_.at(link) != nullptr) links_.at(link)->Prove();
      room_ = true;
      return;
    case SessionAction::Kind::kCloseLink: channels_.Set(link, nullptr); return void(links_.Close(link));
    case SessionAction::Kind::kLinkUp:
      if (links_.at(link) != nullptr) links_.at(link)->Start();
      return RecordUp(host_, action, Ends(link));
    case SessionAction::Kind::kLinkLost: return RecordLost(host_, action, Ends(link));
    case SessionAction::Kind::kLinkFenced: return RecordFenced(host_, action, Ends(link));
    case SessionAction::Kind::kLinkPassed: {
      const auto* const comm = comms_.Find(action.flow);
      return RecordPassed(host_, action, Ends(link), comm == nullptr ? 0 : (*comm)->communicator);
    }
    case SessionAction::Kind::kFailed: return RecordFailed(host_, peer_node_.empty() ? target_.oob.host : peer_node_, action.number);
    case SessionAction::Kind::kLinkStalled:
      return host_->rails_stalled(target_.process, {session_.links().local_rail(link), session_.links().remote_rail(link)});
    case SessionAction::Kind::kLinkRefused: return RecordRefused(host_, action, Ends(link));
    case SessionAction::Kind::kLinkSlow: return RecordSlow(host_, action, Ends(link));
    case SessionAction::Kind::kWarn: return host_->log(LogLevel::kWarn, action.text);
    case SessionAction::Kind::kFlowOpened:
    case SessionAction::Kind::kFlush: return;  // an acceptor's
  }
}

LinkEnds SendPeer::Ends(LinkId link) const {
  return {session_.links().local_rail(link), peer_node_, remote_rails_[session_.links().remote_rail(link)].nic};
}

void SendPeer::FlushChannels() {
  channels_.Flush([this](ChannelId channel) {
    HasLock();
    if (channel != kOobChannel) return Trouble(links_.name(static_cast<LinkId>(channel)), EvidenceCause::kSocketError);
    oob_->Close();
    OobLost(ProbeResult::kSilent);
  });
}

// ---- the out-of-band connection ----

Hello SendPeer::MakeHello(ConnectionKind kind) const {
  Hello hello{.kind = kind, .nonce = target_.nonce, .target_process = target_.process, .session = session_id_};
  hello.process = host_->process;
  hello.node = host_->node;
  hello.oob_address = host_->oob.host;
  hello.oob_port = host_->oob.port;
  if (kind != ConnectionKind::kOob) return hello;
  hello.rails = host_->RailInfos();
  hello.release = host_->release;
  return hello;
}

void SendPeer::OobGreeted(const HelloReply& reply) {
  const auto give_up = [this](ProbeResult result) R2CC_REQUIRES(mutex_) {
    oob_->Close();
    session_.OobDown(result, now());
  };
  if (!reply.accepted) {
    host_->log(LogLevel::kWarn, "R2CC: " + target_.oob.host + " refuses this process: " + reply.reason);
    return give_up(ProbeResult::kRefused);
  }
  if (!IsSpoken(reply.wire_version)) {
    host_->log(LogLevel::kWarn, "R2CC: " + target_.oob.host + " chose wire version " + std::to_string(reply.wire_version) +
                                    ", which it was not offered: install releases next to each other");
    return give_up(ProbeResult::kRefused);
  }
  // A peer's rails do not change their number; names and endpoints may, when it finds its daemon or a rail its address.
  const bool first = remote_rails_.empty();
  if (reply.rails.empty() || (!first && reply.rails.size() != remote_rails_.size())) return give_up(ProbeResult::kSilent);
  peer_node_ = reply.node;
  remote_rails_ = reply.rails;
  if (first) RailsAnnounced(remote_rails_, peer_node_);
  if (const std::string line = NothingInCommon(host_->RailInfos(), remote_rails_, peer_node_); first && !line.empty())
    host_->log(LogLevel::kWarn, line);
  peer_names_ = NamesOnPage(peer_node_, remote_rails_);
  RecordRelease(host_, peer_node_, reply.release, reply.wire_version, &logged_release_);
  session_.OobUp(peer_node_, remote_rails_, now());
  links_.Resize(session_.links().count());
  channels_.Resize(session_.links().count());
  OfferAgain();
  ApplyVerdicts();
}

void SendPeer::OobFrameReceived(const Frame& frame) {
  pump_.MarkAllDirty();
  if (TakeAnswer(frame)) return;
  session_.Receive(kOobChannel, frame, now());
}

// ---- links ----

void SendPeer::OpenLink(LinkId link, Incarnation incarnation) {
  const SendLinks& links = session_.links();
  LinkName name{link, incarnation, links.local_rail(link), links.remote_rail(link), links.is_home(link)};
  LocalRail& local = host_->rails[name.local_rail];
  const RailInfo& remote = remote_rails_[name.remote_rail];
  const auto kind = links.TransportOf(link);
  const Endpoint* const to = kind ? EndpointOf(remote.endpoints, *kind) : nullptr;
  if (to == nullptr || EndpointOf(local.endpoints, *kind) == nullptr || port(*kind) == nullptr)
    return session_.LinkTrouble(link, incarnation, EvidenceCause::kLinkDown, now());
  links_.Begin(name, port(*kind)->NewSend(name, this, &local.sent_bytes));
  SendLink* const opened = links_.at(link);
  channels_.Set(link, opened->control());
  Hello hello = MakeHello(ConnectionKind::kLink);
  hello.link = link;
  hello.local_rail = name.local_rail;
  hello.remote_rail = name.remote_rail;
  hello.incarnation = incarnation;
  hello.links = links.count();
  hello.transport = *kind;
  opened->Open(*to, hello);
}

void SendPeer::Offer(const LinkName& name, const Endpoint& endpoint) {
  const TransportKind kind = session_.links().TransportOf(name.link).value_or(TransportKind::kTcp);
  const uint64_t rails = NumberOf({name.local_rail, name.remote_rail, kind});
  frames::LinkOffer& offer = offers_[name.link];
  offer = {.link = name.link, .incarnation = name.incarnation, .rails = rails, .endpoint = endpoint};
  session_.SendAll(offer);
}

void SendPeer::OfferAgain() {
  std::erase_if(offers_, [this](const auto& offer) {
    return links_.at(offer.first) == nullptr || links_.name(offer.first).incarnation != offer.second.incarnation;
  });
  for (const auto& [link, offer] : offers_) session_.SendAll(offer);
}

bool SendPeer::TakeAnswer(const Frame& frame) {
  const auto* const answer = std::get_if<frames::LinkAnswer>(&frame);
  if (answer == nullptr) return false;
  SendLink* const link = links_.at(answer->link);
  if (link == nullptr || links_.name(answer->link).incarnation != answer->incarnation) return true;
  offers_.erase(answer->link);
  link->Answered(answer->ok, answer->endpoint);
  return true;
}

void SendPeer::FrameReceived(const LinkName& name, const Frame& frame) {
  pump_.MarkDirty(name.link);
  if (TakeAnswer(frame)) return;
  session_.Receive(name.link, frame, now());
}

void SendPeer::Trouble(const LinkName& name, EvidenceCause cause) { session_.LinkTrouble(name.link, name.incarnation, cause, now()); }

void SendPeer::LinkClosed(LinkName name, bool ok) {
  if (ok) links_.Closed(name);
}

bool SendPeer::WithLock(FunctionRef<bool()> report, FunctionRef<bool(bool posted)> ask) {
  return RunWithLock(
      [&] {
        const bool reported = report();
        // A small message goes by one link: a worker that was not woken, as another was on its way, may have one that that may not send.
        if (reported && session_.shared()) pump_.MarkAllDirty();
        return reported;
      },
      ask);
}

}  // namespace r2cc::net
