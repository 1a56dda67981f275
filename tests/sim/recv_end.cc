#include "tests/sim/recv_end.h"

#include <algorithm>
#include <utility>

namespace r2cc::sim {
namespace {

using net::Action;
using net::ConnectionKind;
using net::LinkId;
using plan::EvidenceCause;

net::RecvSession::Options OptionsOf(const Io& io, const net::Hello& hello) {
  net::RecvSession::Options options;
  options.local_rails = static_cast<uint16_t>(io.options.rails);
  options.remote_rails = static_cast<uint16_t>(hello.rails.size());
  options.silence = io.options.silence;
  options.deadline = io.options.deadline;
  options.peer = hello.node;
  options.observer = [tap = io.tap](LinkId, net::AcceptorState state, net::AcceptorEvent event) { tap->Stepped(state, event); };
  return options;
}

}  // namespace

RecvEnd::RecvEnd(Io* io, const net::Hello& hello, FlowOpened flow_opened)
    : io_(io),
      peer_(static_cast<int>(hello.process)),
      session_id_(hello.session),
      tag_(SimTag(hello.session)),
      remote_rails_(static_cast<int>(hello.rails.size())),
      flow_opened_(std::move(flow_opened)),
      session_(OptionsOf(*io, hello), io->now()),
      links_(session_.links()),
      probe_(io, peer_, [this](net::Reach reach) { session_.PeerProbed(reach, io_->now()); }) {
  for (size_t rail = 0; rail < io->rail_up.size(); ++rail)
    if (!io->rail_up[rail]) RailState(static_cast<int>(rail), false);
  ApplyVerdicts();
}

// ---- the job ----

void RecvEnd::Post(net::FlowId flow, void* data, uint64_t capacity_bytes) { session_.Post(flow, data, capacity_bytes, io_->now()); }

void RecvEnd::Close(net::FlowId flow) {
  io_->tap->At(Moment::kRecvClosing, peer_, io_->host, 0);
  for (LinkSockets& sockets : links_)
    for (Bulk& bulk : sockets.bulk)
      if (bulk.in != nullptr) bulk.in->Forget(flow);
  session_.CloseFlow(flow, io_->now());
  Settle();
}

// ---- the process ----

void RecvEnd::ApplyVerdicts() {
  for (uint16_t rail = 0; rail < io_->rail_up.size(); ++rail) session_.LocalVerdict(rail, io_->verdict(io_->host, rail).failed, io_->now());
  for (uint16_t rail = 0; rail < remote_rails_; ++rail) session_.RemoteVerdict(rail, io_->verdict(peer_, rail).failed, io_->now());
  for (uint16_t rail = 0; rail < io_->rail_up.size(); ++rail)
    for (uint16_t remote = 0; remote < remote_rails_; ++remote)
      session_.PathVerdict({rail, remote}, io_->path_broken(rail, peer_, remote), io_->now());
}

bool RecvEnd::Settle() {
  for (LinkId link = 0; link < links_.size(); ++link)
    for (size_t i = 0; i < links_[link].bulk.size(); ++i)
      if (links_[link].bulk[i].more) ReadBulk(link, i);
  session_.Flush(io_->now());
  for (auto actions = session_.TakeActions(); !actions.empty(); actions = session_.TakeActions()) {
    for (const Action& action : actions) Execute(action);
    session_.Flush(io_->now());
  }
  bool more = false;
  for (const LinkSockets& sockets : links_)
    for (const Bulk& bulk : sockets.bulk) more |= bulk.more;
  return more;
}

void RecvEnd::Execute(const Action& action) {
  if (io_->logs() && action.kind != Action::Kind::kSend)
    io_->Log("receiver from " + std::to_string(peer_) + ": action " + std::to_string(static_cast<int>(action.kind)) + " link " +
             std::to_string(action.link) + " incarnation " + std::to_string(action.incarnation) + " " + action.text);
  switch (action.kind) {
    case Action::Kind::kSend: return SendFrame(action.lane, action.frame);
    case Action::Kind::kCloseLink: return CloseLink(action.link);
    case Action::Kind::kFlowOpened:
      if (flow_opened_(this, action.flow, action.number)) return session_.AcceptFlow(action.flow, action.link);
      return session_.RefuseFlow(action.flow);
    case Action::Kind::kCloseOob: return CloseOob();
    case Action::Kind::kProbePeer: return probe_.Start();
    default: return;
  }
}

void RecvEnd::SendFrame(net::Lane lane, const net::Frame& frame) {
  if (io_->logs())
    io_->Log("receiver from " + std::to_string(peer_) + ": lane " + std::to_string(lane) + " <- frame " +
             std::to_string(static_cast<int>(frame.type)) + " flow " + std::to_string(frame.flow) + " message " +
             std::to_string(frame.message) + " link " + std::to_string(frame.link) + "/" + std::to_string(frame.incarnation));
  const Control& control = lane == net::kOobLane ? oob_ : links_[static_cast<size_t>(lane)].control;
  if (control.stream != nullptr) control.stream->Send(net::Encode(frame, tag_));
}

// ---- connections ----

void RecvEnd::AttachOob(std::shared_ptr<Socket> socket) {
  OobDown();
  oob_.stream = std::make_unique<FrameStream>(socket);
  oob_.token = io_->Watch(socket, [this] { OobSpeaks(); });
  session_.OobUp(io_->now());
  ApplyVerdicts();
}

void RecvEnd::CloseOob() {
  if (oob_.stream == nullptr) return;
  io_->Unwatch(oob_.token, &oob_.stream->socket());
  oob_.stream->socket().Abandon();
  oob_.stream.reset();
}

void RecvEnd::OobDown() {
  CloseOob();
  session_.OobDown(io_->now());
}

void RecvEnd::OobSpeaks() {
  FrameStream* stream = oob_.stream.get();
  stream->Flush();
  bool sound = true;
  const auto state = stream->Read([&](std::span<const uint8_t> packet) {
    net::Frame frame;
    sound = net::Decode(packet, tag_, &frame);
    if (sound) session_.Receive(net::kOobLane, frame, io_->now());
    return sound;
  });
  if (!sound || state != FrameStream::State::kOpen) OobDown();
}

bool RecvEnd::AttachLink(const net::Hello& hello, std::shared_ptr<Socket> socket, std::string* reason) {
  if (hello.link >= links_.size() || hello.sockets == 0 || hello.socket >= hello.sockets) {
    *reason = "no such link";
    return false;
  }
  const LinkId link = hello.link;
  if (!session_.Greet(link, hello.incarnation, hello.remote_rail, hello.local_rail, io_->now())) {
    *reason = "this incarnation of the link has ended";
    return false;
  }
  Settle();
  LinkSockets& sockets = links_[link];
  if (sockets.incarnation != hello.incarnation) {
    CloseLink(link);
    sockets.incarnation = hello.incarnation;
    sockets.bulk.resize(hello.sockets);
  }
  if (hello.kind == ConnectionKind::kControl) {
    if (sockets.control.stream != nullptr) {
      *reason = "the link has its control lane already";
      return false;
    }
    sockets.control.stream = std::make_unique<FrameStream>(socket);
    sockets.control.token = io_->Watch(socket, [this, link] { ControlSpeaks(link); });
    session_.LaneOpened(link, hello.incarnation, io_->now());
    return true;
  }
  const size_t index = hello.socket;
  if (index >= sockets.bulk.size() || sockets.bulk[index].in != nullptr) {
    *reason = "the link has this bulk socket already";
    return false;
  }
  Bulk& bulk = sockets.bulk[index];
  bulk.in = std::make_unique<BulkIn>(socket, tag_, io_->host, io_->tap, SimProof(session_id_, link, hello.incarnation, hello.socket));
  bulk.socket = socket;
  bulk.token = io_->Watch(socket, [this, link, index] { ReadBulk(link, index); });
  return true;
}

void RecvEnd::CloseLink(LinkId link) {
  LinkSockets& sockets = links_[link];
  if (sockets.incarnation != 0) {
    io_->tap->CarrierEnded(Who(link));
    io_->tap->At(Moment::kAcceptorEnds, peer_, io_->host, link);
  }
  if (sockets.control.stream != nullptr) {
    io_->Unwatch(sockets.control.token, &sockets.control.stream->socket());
    sockets.control.stream->socket().Abandon();
  }
  for (Bulk& bulk : sockets.bulk) {
    if (bulk.in == nullptr) continue;
    io_->Unwatch(bulk.token, bulk.socket.get());
    bulk.socket->Abandon();
  }
  // What the handlers that are running now stand on lives until the next turn.
  auto old = std::make_shared<LinkSockets>(std::exchange(sockets, LinkSockets{}));
  io_->network->timeline()->After(0, [old] {});
}

void RecvEnd::Trouble(LinkId link, EvidenceCause cause) { session_.LinkTrouble(link, links_[link].incarnation, cause, io_->now()); }

void RecvEnd::ControlSpeaks(LinkId link) {
  FrameStream* stream = links_[link].control.stream.get();
  stream->Flush();
  bool sound = true;
  const auto state = stream->Read([&](std::span<const uint8_t> packet) {
    net::Frame frame;
    sound = net::Decode(packet, tag_, &frame);
    if (sound) session_.Receive(link, frame, io_->now());
    return sound;
  });
  if (!sound || state == FrameStream::State::kGarbled) return Trouble(link, EvidenceCause::kGarbled);
  if (state == FrameStream::State::kClosed) Trouble(link, EvidenceCause::kSocketError);
}

void RecvEnd::ReadBulk(LinkId link, size_t index) {
  LinkSockets& sockets = links_[link];
  Bulk& bulk = sockets.bulk[index];
  bulk.more = false;
  // Ended earlier in this round: its sockets are about to be closed, and nothing of it may reach a buffer.
  if (!session_.link_up(link) || session_.incarnation(link) != sockets.incarnation) return;
  const BulkIn::Sink sink{
      .begin =
          [&](const net::Chunk& chunk, std::byte** destination) {
            if (io_->logs())
              io_->Log("receiver from " + std::to_string(peer_) + ": link " + std::to_string(link) + "/" +
                       std::to_string(sockets.incarnation) + " -> chunk " + std::to_string(chunk.index) + " of flow " +
                       std::to_string(chunk.flow) + " message " + std::to_string(chunk.message));
            const bool taken = session_.Begin(link, sockets.incarnation, chunk, destination);
            if (taken)
              io_->tap->ChunkBegun(Who(link), chunk, *destination);
            else
              io_->tap->ChunkRefused(Who(link), chunk);
            return taken;
          },
      .finish =
          [&](const net::Chunk& chunk) {
            io_->tap->ChunkFinished(Who(link), chunk);
            session_.Finish(link, sockets.incarnation, chunk);
          },
      .proof =
          [&](bool ok) {
            sockets.proved = sockets.proved && ok;
            if (static_cast<size_t>(++sockets.proofs) == sockets.bulk.size()) session_.Proved(link, sockets.incarnation, sockets.proved);
          },
  };
  switch (bulk.in->Read(sink, io_->options.turn_bytes)) {
    case BulkIn::Result::kEmpty: return;
    case BulkIn::Result::kMore: bulk.more = true; return;
    case BulkIn::Result::kBroken: return Trouble(link, EvidenceCause::kSocketError);
    case BulkIn::Result::kGarbled: return Trouble(link, EvidenceCause::kGarbled);
  }
}

// ---- the end ----

bool RecvEnd::Flushed() const {
  return (oob_.stream == nullptr || oob_.stream->flushed()) && std::all_of(links_.begin(), links_.end(), [](const LinkSockets& sockets) {
           return sockets.control.stream == nullptr || sockets.control.stream->flushed();
         });
}

void RecvEnd::End() {
  if (oob_.stream != nullptr) oob_.stream->socket().HalfClose();
  for (LinkSockets& sockets : links_)
    if (sockets.control.stream != nullptr) sockets.control.stream->socket().HalfClose();
  for (LinkId link = 0; link < links_.size(); ++link) CloseLink(link);
  if (oob_.stream != nullptr) {
    io_->Unwatch(oob_.token, &oob_.stream->socket());
    oob_.stream->socket().Close();
  }
  probe_.Stop();
}

}  // namespace r2cc::sim
