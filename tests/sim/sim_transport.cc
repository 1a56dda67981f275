#include "tests/sim/sim_transport.h"

#include <cstring>
#include <utility>

#include "tests/sim/sim_oob.h"
#include "tests/sim/sim_recv_link.h"
#include "tests/sim/sim_send_link.h"

namespace r2cc::sim {
namespace {

// As TcpListener's.
constexpr Nanos kCallerPatience = 5 * kNanosPerSecond;

}  // namespace

net::Endpoint EndpointOf(const RailAddress& address) {
  return {static_cast<uint8_t>(address.port.host), static_cast<uint8_t>(address.port.rail), address.generation};
}

RailAddress AddressOf(const net::Endpoint& endpoint) { return {{endpoint.at(0), endpoint.at(1)}, endpoint.at(2)}; }

std::string HostName(int host) { return "host" + std::to_string(host); }

std::string RailName(int rail) { return "rail" + std::to_string(rail); }

int HostOf(const std::string& name) { return std::stoi(name.substr(name.find_first_of("0123456789"))); }

// ---- a control channel ----

void SimChannel::Open(std::unique_ptr<FrameStream> stream) {
  stream_ = std::move(stream);
  token_ = port_->ready.Watch(stream_->shared(), [this] { Poll(); });
}

void SimChannel::Close(bool abandon) {
  if (!open()) return;
  port_->ready.Unwatch(token_, &stream_->socket());
  abandon ? stream_->socket().Reset() : stream_->socket().Close();
  // A handler that is running now may stand on it.
  port_->io->network->timeline()->After(0, [old = std::shared_ptr<FrameStream>(std::move(stream_))] {});
}

namespace {

// For the log: the type, and what most types name.
std::string Text(const net::Frame& frame) {
  return std::to_string(static_cast<int>(net::TypeOf(frame))) + std::visit(
                                                                    [](const auto& of) {
                                                                      std::string text;
                                                                      if constexpr (requires { of.flow; })
                                                                        text += " flow " + std::to_string(of.flow);
                                                                      if constexpr (requires { of.placed_through; })
                                                                        text += " placed through " + std::to_string(of.placed_through);
                                                                      if constexpr (requires { of.link; })
                                                                        text += " link " + std::to_string(of.link) + "/" +
                                                                                std::to_string(of.incarnation);
                                                                      return text;
                                                                    },
                                                                    frame);
}

}  // namespace

void SimChannel::Queue(const net::Frame& frame) {
  if (!open()) return;
  if (port_->io->logs())
    port_->io->Log("to " + std::to_string(stream_->socket().remote().host) + "/" + std::to_string(stream_->socket().remote().rail) +
                   ": frame " + Text(frame));
  stream_->Send(net::Encode(frame, port_->key.tag));
}

void SimChannel::Poll() {
  if (!open()) return;
  stream_->Flush();
  bool sound = true;
  const auto state = stream_->Read([&](std::span<const uint8_t> packet) {
    net::Frame frame;
    sound = net::Decode(packet, port_->key.tag, &frame);
    if (sound) sink_.received(frame);
    return sound;
  });
  if (!sound || state == FrameStream::State::kGarbled) return sink_.broken(plan::EvidenceCause::kGarbled);
  if (state == FrameStream::State::kClosed) sink_.broken(plan::EvidenceCause::kSocketError);
}

// ---- a port ----

std::unique_ptr<net::SendLink> SimPort::NewSend(const net::LinkName& name, net::SendOwner* owner, net::Counter* carried) {
  return std::make_unique<SimSendLink>(this, name, owner, carried);
}

std::unique_ptr<net::RecvLink> SimPort::NewRecv(const net::LinkName& name, net::RecvOwner* owner, net::Counter* carried) {
  return std::make_unique<SimRecvLink>(this, name, owner, carried);
}

std::unique_ptr<net::Oob> SimPort::NewOob(const net::OobAddress& peer, net::OobOwner* owner) {
  return std::make_unique<SimOob>(this, peer, owner);
}

bool SimPort::Poll() {
  if (!io->reader_stuck)
    for (const ReadySet::Token token : std::exchange(stuck, {})) ready.Ready(token);
  ready.Run();
  // A link whose close has ended is gone when it has said so.
  for (const auto links = senders; SimSendLink* const link : links) link->FinishClose();
  for (const auto links = receivers; SimRecvLink* const link : links) link->FinishClose();
  return true;
}

void SimPort::LoseDevice(uint16_t rail) {
  for (SimSendLink* const link : senders) link->DeviceLost(rail);
  for (SimRecvLink* const link : receivers) link->DeviceLost(rail);
}

// ---- the transport ----

bool SimTransport::Listen(const net::Rail& rail, net::Endpoint* own, std::string*) {
  const Port port{io_->host, rail.index};
  *own = EndpointOf({port, io_->network->generation(port)});
  return true;
}

bool SimTransport::Register(const net::Memory& memory, uint16_t rail, net::Endpoint* key, std::string* error) {
  if (memory.kind != net::MemoryKind::kHost) {
    *error = "a socket cannot reach the memory of a GPU";
    return false;
  }
  if (!keys_) return true;
  if (io_->device_lost[rail] || io_->refusing_rail == rail) {
    *error = "the device of rail " + std::to_string(rail) + " takes no memory";
    return false;
  }
  const auto begin = reinterpret_cast<uintptr_t>(memory.base);
  const uint64_t number = ++io_->keys_given;
  io_->registered[number] = {memory.id, rail, begin, begin + memory.bytes, io_->device_was_lost[rail]};
  key->resize(sizeof(number));
  std::memcpy(key->data(), &number, sizeof(number));
  return true;
}

void SimTransport::Unregister(const net::Memory& memory, uint16_t rail) {
  std::erase_if(io_->registered, [&](const auto& entry) { return entry.second.region == memory.id && entry.second.rail == rail; });
}

void SimTransport::Accepted(std::shared_ptr<Socket> socket) {
  const uint64_t id = next_caller_++;
  Caller& caller = callers_[id];
  caller.stream = std::make_unique<FrameStream>(socket);
  caller.since = io_->local_now();
  caller.token = ready_.Watch(socket, [this, id] { CallerSpeaks(id); });
}

std::unique_ptr<FrameStream> SimTransport::Take(uint64_t id) {
  Caller& caller = callers_.at(id);
  std::unique_ptr<FrameStream> stream = std::move(caller.stream);
  ready_.Unwatch(caller.token, &stream->socket());
  callers_.erase(id);
  return stream;
}

void SimTransport::Tick(Nanos now) {
  probes_.Tick(now);
  // Identifiers grow with time: the oldest is first.
  while (!callers_.empty() && now - callers_.begin()->second.since >= kCallerPatience) Take(callers_.begin()->first)->socket().Close();
}

void SimTransport::CallerSpeaks(uint64_t id) {
  Caller& caller = callers_.at(id);
  net::Bytes packet;
  bool whole = false;
  const auto state = caller.stream->ReadOne(&packet, &whole);
  net::Hello hello;
  const bool good = state == FrameStream::State::kOpen && (!whole || net::Decode(packet, &hello));
  if (good && !whole) return;
  std::unique_ptr<net::Connection> connection = std::make_unique<SimConnection>(Take(id));
  if (!good) return;
  const net::HelloReply reply = greet_(hello, &connection);
  if (reply.accepted || connection == nullptr) return;
  static_cast<SimConnection&>(*connection).stream->Send(net::Encode(reply));
  static_cast<SimConnection&>(*connection).stream->socket().Close();
  static_cast<SimConnection&>(*connection).stream.reset();
}

}  // namespace r2cc::sim
