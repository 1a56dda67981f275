#include "tests/sim/send_end.h"

#include <algorithm>
#include <utility>

namespace r2cc::sim {
namespace {

using net::Action;
using net::ConnectionKind;
using net::LinkId;
using net::Reach;
using plan::EvidenceCause;

// How often the kernel is asked what it delivered.
constexpr Nanos kRatesEvery = 10 * kNanosPerMs;
constexpr Nanos kOobConnectLimit = 2 * kNanosPerSecond;

net::SendSession::Options OptionsOf(const Io& io, int peer) {
  net::SendSession::Options options;
  options.local_rails = static_cast<uint16_t>(io.options.rails);
  options.chunk_base_bytes = io.options.chunk_bytes;
  options.silence = io.options.silence;
  options.deadline = io.options.deadline;
  options.mode = io.options.mode;
  options.peer = "host" + std::to_string(peer);
  options.eager_bytes = io.options.eager_bytes;
  options.observer = [tap = io.tap](LinkId, net::InitiatorState state, net::InitiatorEvent event) { tap->Stepped(state, event); };
  return options;
}

}  // namespace

SendEnd::SendEnd(Io* io, int peer, uint64_t session)
    : io_(io),
      peer_(peer),
      session_id_(session),
      tag_(SimTag(session)),
      session_(OptionsOf(*io, peer), io->now()),
      probe_(io, peer, [this](Reach reach) { session_.PeerProbed(reach, io_->now()); }) {
  for (size_t rail = 0; rail < io->rail_up.size(); ++rail)
    if (!io->rail_up[rail]) RailState(static_cast<int>(rail), false);
}

// ---- the job ----

net::FlowId SendEnd::Open(uint64_t listen_id, int local_rail) {
  return session_.OpenFlow(listen_id, static_cast<uint16_t>(local_rail), io_->now());
}

void SendEnd::Close(net::FlowId flow) {
  const bool holds_buffers = session_.HoldsBuffers(flow);
  session_.CloseFlow(flow, io_->now());
  // A half-sent chunk still reads the job's buffer: its link ends, and the other flows on it replay.
  const auto reads = [flow](const Bulk& bulk) {
    return bulk.out != nullptr && bulk.out->half_sent() != nullptr && bulk.out->half_sent()->flow == flow;
  };
  for (LinkId link = 0; holds_buffers && link < links_.size(); ++link)
    if (std::any_of(links_[link].bulk.begin(), links_[link].bulk.end(), reads)) Trouble(link, EvidenceCause::kFlowClosed);
  Settle();
}

// ---- the process ----

void SendEnd::ApplyVerdicts() {
  for (uint16_t rail = 0; rail < io_->rail_up.size(); ++rail) session_.LocalVerdict(rail, io_->verdict(io_->host, rail), io_->now());
  for (uint16_t rail = 0; rail < remote_rails_; ++rail) session_.RemoteVerdict(rail, io_->verdict(peer_, rail), io_->now());
  for (uint16_t rail = 0; rail < io_->rail_up.size(); ++rail)
    for (uint16_t remote = 0; remote < remote_rails_; ++remote)
      session_.PathVerdict({rail, remote}, io_->path_broken(rail, peer_, remote), io_->now());
}

// What the kernel says of each link that is up.
void SendEnd::TellRates() {
  if (io_->now() - rates_told_ < kRatesEvery) return;
  rates_told_ = io_->now();
  for (LinkId link = 0; link < links_.size(); ++link) {
    if (!links_[link].was_up) continue;
    uint64_t delivered_bytes = 0;
    Nanos busy = 0;
    for (const Bulk& bulk : links_[link].bulk) {
      delivered_bytes += bulk.socket->acknowledged_bytes();
      busy = std::max(busy, bulk.socket->busy());
    }
    session_.LinkRate(link, links_[link].incarnation, delivered_bytes, busy, true, io_->now());
  }
}

void SendEnd::Tick() {
  if (oob_greeting_.stream != nullptr && io_->now() - oob_since_ >= kOobConnectLimit)
    OobDown(oob_greeting_.stream->socket().connected() ? Reach::kAnswers : Reach::kSilent);
  probe_.Tick();
  TellRates();
  session_.Tick(io_->now());
}

void SendEnd::Obey() {
  for (auto actions = session_.TakeActions(); !actions.empty(); actions = session_.TakeActions())
    for (const Action& action : actions) Execute(action);
}

bool SendEnd::Settle() {
  for (;;) {
    Obey();
    const bool more = PumpAll();
    const auto actions = session_.TakeActions();
    for (const Action& action : actions) Execute(action);
    if (actions.empty()) return more;
  }
}

void SendEnd::Execute(const Action& action) {
  if (io_->logs() && action.kind != Action::Kind::kSend)
    io_->Log("sender to " + std::to_string(peer_) + ": action " + std::to_string(static_cast<int>(action.kind)) + " link " +
             std::to_string(action.link) + " incarnation " + std::to_string(action.incarnation) + " " + action.text);
  if (action.kind == Action::Kind::kLinkUp || action.kind == Action::Kind::kLinkFenced || action.kind == Action::Kind::kLinkSlow)
    io_->tap->Recorded(io_->host, peer_, session_.local_rail(action.link), action);
  switch (action.kind) {
    case Action::Kind::kSend: return SendFrame(action.lane, action.frame);
    case Action::Kind::kOpenOob: return OpenOob();
    case Action::Kind::kCloseOob: return CloseOob(true);
    case Action::Kind::kProbePeer: return probe_.Start();
    case Action::Kind::kOpenLink: return OpenLink(action.link, action.incarnation);
    case Action::Kind::kProveLink: return ProveLink(action.link);
    case Action::Kind::kCloseLink: return CloseLink(action.link);
    case Action::Kind::kLinkUp: links_[action.link].was_up = true; return io_->tap->At(Moment::kLinkUp, io_->host, peer_, action.link);
    case Action::Kind::kLinkFenced: return io_->tap->At(Moment::kLinkReplays, io_->host, peer_, action.link);
    default: return;
  }
}

void SendEnd::SendFrame(net::Lane lane, const net::Frame& frame) {
  if (io_->logs())
    io_->Log("sender to " + std::to_string(peer_) + ": lane " + std::to_string(lane) + " <- frame " +
             std::to_string(static_cast<int>(frame.type)) + " flow " + std::to_string(frame.flow) + " link " + std::to_string(frame.link) +
             "/" + std::to_string(frame.incarnation));
  const Control& control = lane == net::kOobLane ? oob_ : links_[static_cast<size_t>(lane)].control;
  if (control.stream != nullptr) control.stream->Send(net::Encode(frame, tag_));
}

void SendEnd::Receive(net::Lane lane, std::span<const uint8_t> packet, bool* sound) {
  net::Frame frame;
  *sound = net::Decode(packet, tag_, &frame);
  if (*sound) session_.Receive(lane, frame, io_->now());
}

// ---- out-of-band lane ----

net::Hello SendEnd::MakeHello(ConnectionKind kind) const {
  net::Hello hello;
  hello.kind = kind;
  hello.target_process = static_cast<uint64_t>(peer_);
  hello.session = session_id_;
  hello.process = static_cast<uint64_t>(io_->host);
  hello.node = "host" + std::to_string(io_->host);
  if (kind == ConnectionKind::kOob) hello.rails = io_->Rails();
  return hello;
}

void SendEnd::OpenOob() {
  CloseOob(true);
  oob_since_ = io_->now();
  auto socket = io_->network->Connect({io_->host, kOobRail}, {peer_, kOobRail}, true);
  oob_greeting_.stream = std::make_unique<FrameStream>(socket);
  oob_greeting_.said = false;
  oob_greeting_.token = io_->Watch(socket, [this] { OobGreets(); });
}

void SendEnd::CloseOob(bool abandon) {
  for (auto* at : {&oob_greeting_.stream, &oob_.stream}) {
    if (*at == nullptr) continue;
    io_->Unwatch(at == &oob_.stream ? oob_.token : oob_greeting_.token, &(*at)->socket());
    abandon ? (*at)->socket().Abandon() : (*at)->socket().Close();
    at->reset();
  }
}

void SendEnd::OobDown(net::Reach reach) {
  CloseOob(true);
  session_.OobDown(reach, io_->now());
}

void SendEnd::OobGreets() {
  FrameStream& stream = *oob_greeting_.stream;
  if (stream.socket().broken() && stream.socket().Readable() == 0)
    return OobDown(stream.socket().refused() ? Reach::kRefused : Reach::kSilent);
  if (!stream.socket().connected()) return;
  if (!std::exchange(oob_greeting_.said, true)) stream.Send(net::Encode(MakeHello(ConnectionKind::kOob)));
  stream.Flush();
  net::Bytes packet;
  bool whole = false;
  if (stream.ReadOne(&packet, &whole) != FrameStream::State::kOpen) return OobDown(Reach::kAnswers);
  if (!whole) return;
  net::HelloReply reply;
  if (!net::Decode(packet, &reply)) return OobDown(Reach::kAnswers);
  if (!reply.accepted) return OobDown(Reach::kRefused);
  remote_rails_ = reply.rails.size();
  io_->Unwatch(oob_greeting_.token, &stream.socket());
  auto socket = stream.Release();
  oob_greeting_.stream.reset();
  oob_.stream = std::make_unique<FrameStream>(socket);
  oob_.token = io_->Watch(socket, [this] { OobSpeaks(); });
  session_.OobUp(reply.node, reply.rails, io_->now());
  links_.resize(session_.links());
  ApplyVerdicts();
}

void SendEnd::OobSpeaks() {
  FrameStream* stream = oob_.stream.get();
  stream->Flush();
  bool sound = true;
  const auto state = stream->Read([&](std::span<const uint8_t> packet) {
    Receive(net::kOobLane, packet, &sound);
    return sound;
  });
  if (!sound || state != FrameStream::State::kOpen) OobDown(Reach::kSilent);
}

// ---- links ----

void SendEnd::Trouble(LinkId link, EvidenceCause cause) { session_.LinkTrouble(link, links_[link].incarnation, cause, io_->now()); }

void SendEnd::OpenLink(LinkId link, net::Incarnation incarnation) {
  CloseLink(link);
  io_->tap->At(Moment::kLinkOpening, io_->host, peer_, link);
  LinkSockets& sockets = links_[link];
  sockets.incarnation = incarnation;
  sockets.bulk.resize(io_->options.sockets_per_rail);
  for (int i = -1; i < io_->options.sockets_per_rail; ++i) {
    auto greeting = std::make_unique<Greeting>();
    greeting->kind = i < 0 ? ConnectionKind::kControl : ConnectionKind::kBulk;
    greeting->socket = static_cast<uint8_t>(std::max(i, 0));
    auto socket = io_->network->Connect({io_->host, session_.local_rail(link)}, {peer_, session_.remote_rail(link)}, false);
    greeting->stream = std::make_unique<FrameStream>(socket);
    greeting->token = io_->Watch(socket, [this, link, raw = greeting.get()] { LinkGreets(link, raw); });
    sockets.greeting.push_back(std::move(greeting));
  }
}

void SendEnd::CloseLink(LinkId link) {
  LinkSockets& sockets = links_[link];
  if (sockets.was_up) io_->tap->At(Moment::kLinkFencing, io_->host, peer_, link);
  for (auto& greeting : sockets.greeting) {
    if (greeting->stream == nullptr) continue;
    io_->Unwatch(greeting->token, &greeting->stream->socket());
    greeting->stream->socket().Abandon();
  }
  if (sockets.control.stream != nullptr) {
    io_->Unwatch(sockets.control.token, &sockets.control.stream->socket());
    sockets.control.stream->socket().Abandon();
  }
  for (Bulk& bulk : sockets.bulk) {
    if (bulk.out == nullptr) continue;
    io_->Unwatch(bulk.token, bulk.socket.get());
    bulk.socket->Abandon();
  }
  // What the handlers that are running now stand on lives until the next turn.
  auto old = std::make_shared<LinkSockets>(std::exchange(sockets, LinkSockets{.incarnation = sockets.incarnation}));
  io_->network->timeline()->After(0, [old] {});
}

void SendEnd::LinkGreets(LinkId link, Greeting* greeting) {
  FrameStream& stream = *greeting->stream;
  if (stream.socket().broken() && stream.socket().Readable() == 0) return Trouble(link, EvidenceCause::kSocketError);
  if (!stream.socket().connected()) return;
  if (!std::exchange(greeting->said, true)) {
    net::Hello hello = MakeHello(greeting->kind);
    hello.link = link;
    hello.local_rail = session_.local_rail(link);
    hello.remote_rail = session_.remote_rail(link);
    hello.incarnation = links_[link].incarnation;
    hello.socket = greeting->socket;
    hello.sockets = io_->options.sockets_per_rail;
    hello.links = session_.links();
    stream.Send(net::Encode(hello));
  }
  stream.Flush();
  net::Bytes packet;
  bool whole = false;
  if (stream.ReadOne(&packet, &whole) != FrameStream::State::kOpen) return Trouble(link, EvidenceCause::kSocketError);
  if (!whole) return;
  net::HelloReply reply;
  if (!net::Decode(packet, &reply)) return Trouble(link, EvidenceCause::kGarbled);
  if (!reply.accepted) return Trouble(link, EvidenceCause::kPeerFenced);
  Greeted(link, greeting);
}

void SendEnd::Greeted(LinkId link, Greeting* greeting) {
  LinkSockets& sockets = links_[link];
  io_->Unwatch(greeting->token, &greeting->stream->socket());
  auto socket = greeting->stream->Release();
  greeting->stream.reset();
  if (greeting->kind == ConnectionKind::kControl) {
    sockets.control.stream = std::make_unique<FrameStream>(socket);
    sockets.control.token = io_->Watch(socket, [this, link] { ControlSpeaks(link); });
  } else {
    const size_t index = greeting->socket;
    sockets.bulk[index].out = std::make_unique<BulkOut>(socket, tag_, io_->host, io_->tap);
    sockets.bulk[index].socket = socket;
    sockets.bulk[index].token = io_->Watch(socket, [this, link, index] { BulkReady(link, index); });
  }
  const bool all = sockets.control.stream != nullptr &&
                   std::all_of(sockets.bulk.begin(), sockets.bulk.end(), [](const Bulk& bulk) { return bulk.out != nullptr; });
  if (all) session_.LinkConnected(link, sockets.incarnation, io_->now());
}

void SendEnd::ControlSpeaks(LinkId link) {
  FrameStream* stream = links_[link].control.stream.get();
  stream->Flush();
  bool sound = true;
  const auto state = stream->Read([&](std::span<const uint8_t> packet) {
    Receive(link, packet, &sound);
    return sound;
  });
  if (!sound || state == FrameStream::State::kGarbled) return Trouble(link, EvidenceCause::kGarbled);
  if (state == FrameStream::State::kClosed) Trouble(link, EvidenceCause::kSocketError);
}

void SendEnd::ProveLink(LinkId link) {
  io_->tap->At(Moment::kLinkProving, io_->host, peer_, link);
  LinkSockets& sockets = links_[link];
  for (size_t i = 0; i < sockets.bulk.size(); ++i) {
    sockets.bulk[i].out->SendProof(SimProof(session_id_, link, sockets.incarnation, static_cast<uint8_t>(i)));
    sockets.bulk[i].blocked = false;
  }
}

bool SendEnd::Flushed() const {
  return (oob_.stream == nullptr || oob_.stream->flushed()) && std::all_of(links_.begin(), links_.end(), [](const LinkSockets& sockets) {
           return sockets.control.stream == nullptr || sockets.control.stream->flushed();
         });
}

void SendEnd::End() {
  for (LinkSockets& sockets : links_)
    if (sockets.control.stream != nullptr) sockets.control.stream->socket().HalfClose();
  for (LinkId link = 0; link < links_.size(); ++link) {
    links_[link].was_up = false;
    CloseLink(link);
  }
  CloseOob(false);
  probe_.Stop();
}

}  // namespace r2cc::sim
