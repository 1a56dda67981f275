#include "tests/sim/sim_send_link.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace r2cc::sim {
namespace {

using plan::EvidenceCause;

// Which connection of the link it is: -1 is the control channel.
net::Endpoint PathOf(int socket, uint8_t sockets) { return {static_cast<uint8_t>(socket + 1), sockets}; }

// Of a connection that nobody has greeted yet: it waits.
net::PathFacts FactsOf(const Socket* socket) {
  if (socket == nullptr) return {.unacknowledged = true};
  return {.delivered_bytes = socket->acknowledged_bytes(),
          .unacknowledged = socket->Unacknowledged() > 0,
          .window_open = socket->window_open(),
          .timeouts = static_cast<uint32_t>(socket->timeouts()),
          .packet_bytes = 4096,
          .passed_packet_bytes = static_cast<uint32_t>(Network::kSmallPacketBytes)};
}

}  // namespace

SimSendLink::SimSendLink(SimPort* port, const net::LinkName& name, net::SendOwner* owner, net::Counter* carried)
    : port_(port), io_(port->io), name_(name), owner_(owner), carried_(carried), channel_(port, SinkOf(owner, name)) {
  port_->senders.push_back(this);
}

SimSendLink::~SimSendLink() {
  std::erase(port_->senders, this);
  EndSockets();
}

void SimSendLink::Open(const net::Endpoint& remote_rail, const net::Hello& hello) {
  const RailAddress to = AddressOf(remote_rail);
  peer_ = to.port.host;
  io_->tap->At(Moment::kLinkOpening, io_->host, peer_, name_.link);
  if (io_->device_lost[name_.local_rail]) return Trouble(EvidenceCause::kLinkDown);
  // An address that nobody has any more does not answer.
  if (to.generation != io_->network->generation(to.port)) return;
  bulk_.resize(io_->options.sockets_per_rail);
  for (int i = -1; i < io_->options.sockets_per_rail; ++i) {
    auto greeting = std::make_unique<Greeting>();
    greeting->socket = i;
    net::Hello path = hello;
    path.endpoint = PathOf(i, io_->options.sockets_per_rail);
    greeting->hello = net::Encode(path);
    auto socket = io_->network->Connect({io_->host, name_.local_rail}, to.port, false);
    greeting->stream = std::make_unique<FrameStream>(socket);
    greeting->token = port_->ready.Watch(socket, [this, raw = greeting.get()] { Greets(raw); });
    greetings_.push_back(std::move(greeting));
  }
}

void SimSendLink::Greets(Greeting* greeting) {
  FrameStream& stream = *greeting->stream;
  if (stream.socket().broken() && stream.socket().Readable() == 0) return Trouble(EvidenceCause::kSocketError);
  if (!stream.socket().connected()) return;
  if (!greeting->hello.empty()) stream.Send(std::exchange(greeting->hello, {}));
  stream.Flush();
  net::Bytes packet;
  bool whole = false;
  if (stream.ReadOne(&packet, &whole) != FrameStream::State::kOpen) return Trouble(EvidenceCause::kSocketError);
  if (!whole) return;
  net::HelloReply reply;
  if (!net::Decode(packet, &reply)) return Trouble(EvidenceCause::kGarbled);
  if (!reply.accepted) return Trouble(EvidenceCause::kPeerFenced);
  port_->ready.Unwatch(greeting->token, &stream.socket());
  std::unique_ptr<FrameStream> greeted = std::move(greeting->stream);
  if (greeting->socket < 0) {
    channel_.Open(std::move(greeted));
  } else {
    const auto index = static_cast<size_t>(greeting->socket);
    Bulk& bulk = bulk_[index];
    bulk.socket = greeted->Release();
    bulk.out = std::make_unique<BulkOut>(bulk.socket, port_->key.tag, io_->host, io_->tap, io_->options.keys);
    bulk.token = port_->ready.Watch(bulk.socket, [this, index] { BulkReady(index); });
  }
  if (channel_.open() && std::all_of(bulk_.begin(), bulk_.end(), [](const Bulk& bulk) { return bulk.out != nullptr; }))
    owner_->Connected(name_);
}

void SimSendLink::BulkReady(size_t index) {
  if (bulk_[index].socket->broken() || bulk_[index].socket->ended()) return Trouble(EvidenceCause::kSocketError);
  owner_->Ready(name_);
}

void SimSendLink::Prove() {
  io_->tap->At(Moment::kLinkProving, io_->host, peer_, name_.link);
  for (size_t i = 0; i < bulk_.size(); ++i)
    bulk_[i].out->SendProof(SimProof(port_->key.session, name_.link, name_.incarnation, static_cast<uint8_t>(i)));
  owner_->Ready(name_);
}

void SimSendLink::Start() {
  started_ = true;
  io_->tap->At(Moment::kLinkUp, io_->host, peer_, name_.link);
}

SimKey SimSendLink::Carried(const net::Chunk& chunk) {
  if (io_->logs())
    io_->Log("link " + std::to_string(name_.link) + "/" + std::to_string(name_.incarnation) + " to " + std::to_string(peer_) +
             " carries chunk " + std::to_string(chunk.index) + " of flow " + std::to_string(chunk.flow) + " message " +
             std::to_string(chunk.message));
  io_->tap->ChunkSent({peer_, io_->host, name_.link, name_.incarnation}, chunk);
  *carried_ += chunk.bytes;
  SimKey key;
  if (!io_->options.keys || chunk.eager) return key;
  // Its own device has to know what it reads.
  if (chunk.memory == nullptr || !io_->Reaches(name_.local_rail, *chunk.memory))
    io_->tap->Keyed({peer_, io_->host, name_.link, name_.incarnation}, chunk, false, false);
  const net::WriteTarget target = owner_->TargetOf(name_, chunk);
  key.address = target.address;
  if (target.key != nullptr) std::memcpy(&key.number, target.key->data(), sizeof(key.number));
  return key;
}

bool SimSendLink::PumpSocket(Bulk* bulk) {
  if (bulk->out->half_sent() != nullptr && !owner_->Expects(*bulk->out->half_sent())) {
    Trouble(EvidenceCause::kGarbled);
    return false;
  }
  return bulk->out->Pump([this](net::Chunk* chunk, SimKey* key) {
    if (!owner_->Pull(name_, chunk)) return false;
    *key = Carried(*chunk);
    return true;
  }) == BulkOut::Result::kMore;
}

net::SendLink::Room SimSendLink::Pump(int most, bool) {
  Room room = Room::kNone;
  for (Bulk& bulk : bulk_) {
    if (bulk.out == nullptr || (bulk.out->busy() && !PumpSocket(&bulk))) continue;
    if (most == 0 && bulk.socket->Room() > 0) room = Room::kLeft;
    for (int sent = 0; most > 0 && PumpSocket(&bulk);)
      if (++sent == most) return Room::kLeft;
  }
  return room;
}

bool SimSendLink::busy() const {
  return std::any_of(bulk_.begin(), bulk_.end(), [](const Bulk& bulk) { return bulk.out != nullptr && bulk.out->busy(); });
}

net::SendLink::Sent SimSendLink::SendNow(FunctionRef<bool(net::Chunk*)> post) {
  if (!started_ || bulk_.empty() || bulk_.front().out->busy()) return Sent::kNot;
  bool posted = false;
  BulkOut& out = *bulk_.front().out;
  out.Pump([&](net::Chunk* chunk, SimKey* key) {
    if (posted || !post(chunk)) return false;
    posted = true;
    *key = Carried(*chunk);
    return true;
  });
  if (!posted) return Sent::kNot;
  return out.busy() ? Sent::kBufferInUse : Sent::kBufferFree;
}

void SimSendLink::Retarget(net::FlowId flow, net::MessageId message, const std::byte* copy) {
  for (Bulk& bulk : bulk_) {
    const net::Chunk* const chunk = bulk.out == nullptr ? nullptr : bulk.out->half_sent();
    if (chunk != nullptr && chunk->flow == flow && chunk->message == message) bulk.out->Retarget(copy);
  }
}

bool SimSendLink::Holds(net::FlowId flow) {
  return std::any_of(bulk_.begin(), bulk_.end(), [flow](const Bulk& bulk) {
    return bulk.out != nullptr && bulk.out->half_sent() != nullptr && bulk.out->half_sent()->flow == flow;
  });
}

net::LinkFacts SimSendLink::Measure() {
  net::LinkFacts facts;
  facts.paths.push_back(FactsOf(channel_.socket()));
  facts.paths.back().control = true;
  for (const Bulk& bulk : bulk_) facts.paths.push_back(FactsOf(bulk.socket.get()));
  for (const Bulk& bulk : bulk_) {
    if (bulk.socket == nullptr) continue;
    facts.delivered_bytes += bulk.socket->acknowledged_bytes();
    facts.busy = std::max(facts.busy, bulk.socket->busy());
    facts.limited |= (bulk.socket->busy() > 0 && bulk.socket->Room() == 0);
  }
  return facts;
}

void SimSendLink::DeviceLost(uint16_t rail) {
  if (name_.local_rail == rail && !ending_.begun()) Trouble(EvidenceCause::kLinkDown);
}

void SimSendLink::EndSockets() {
  for (const auto& greeting : greetings_) {
    if (greeting->stream == nullptr) continue;
    port_->ready.Unwatch(greeting->token, &greeting->stream->socket());
    greeting->stream->socket().Reset();
  }
  // What handlers that are running now stand on lives until the next turn.
  io_->network->timeline()->After(0, [old = std::make_shared<decltype(greetings_)>(std::move(greetings_))] {});
  greetings_.clear();
  channel_.Close(true);
  port_->Unwatch(&bulk_);
  for (Bulk& bulk : bulk_)
    if (bulk.socket != nullptr) bulk.socket->Reset();
  bulk_.clear();
}

bool SimSendLink::Close() {
  if (started_) io_->tap->At(Moment::kLinkFencing, io_->host, peer_, name_.link);
  channel_.Close(true);
  port_->Unwatch(&bulk_);
  if (!ending_.Begin(io_)) return false;
  EndSockets();
  return true;
}

void SimSendLink::FinishClose() {
  const Ending::Answer answer = ending_.Take(*io_);
  if (answer == Ending::Answer::kNone) return;
  if (answer == Ending::Answer::kFailed) return owner_->LinkClosed(name_, false);
  // Until now a device may have read what it was told to send.
  for (Bulk& bulk : bulk_)
    if (bulk.out != nullptr && bulk.out->half_sent() != nullptr && bulk.out->half_sent()->bytes > 0)
      io_->tap->DeviceReads(io_->host, bulk.out->half_sent()->data);
  EndSockets();
  owner_->LinkClosed(name_, true);
}

}  // namespace r2cc::sim
