#include "netplugin/transport/tcp/send_link.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/core/check.h"
#include "netplugin/flow/tuning.h"
#include "netplugin/transport/tcp/endpoint.h"
#include "netplugin/transport/tcp/tcp_port.h"

namespace r2cc::net {
namespace {

using plan::EvidenceCause;

// The sizes of whole packets that the data check sends first. Below the smallest everything passes; 1,280 is IPv6's least MTU, 1,400 what
// tunnels leave of 1,500, and 1,500 what a switch port falls back to; jumbo frames have 9,000, of InfiniBand 4,096.
constexpr uint32_t kProofPacketBytes[] = {576, 1280, 1400, 1500, 4096};

// Where in its stream the packets of these sizes end.
std::vector<size_t> ProofOffsets(const TcpStats& stats) {
  std::vector<size_t> offsets;
  for (const uint32_t bytes : kProofPacketBytes)
    if (bytes > stats.packet_header_bytes && bytes < stats.packet_bytes)
      offsets.push_back((offsets.empty() ? 0 : offsets.back()) + bytes - stats.packet_header_bytes);
  return offsets;
}

// Estimates waver: a small change is not worth a call.
bool IsNear(uint64_t value, uint64_t other) { return value - value / 8 <= other && other - other / 8 <= value; }

}  // namespace

TcpSendLink::TcpSendLink(TcpPort* port, const LinkName& name, SendOwner* owner, Counter* carried)
    : port_(port), name_(name), owner_(owner), carried_(carried), control_(port->poller(), port->key().tag, SinkOf(owner, name)) {
  port_->Add(this);
}

TcpSendLink::~TcpSendLink() { R2CC_CHECK(closed_); }

bool TcpSendLink::Close() {
  closed_ = true;
  port_->Remove(this);
  connectors_.clear();
  control_.Reset();
  for (Bulk& bulk : bulk_) {
    if (bulk.sender == nullptr) continue;
    bulk.ownership.End(port_->workers(), bulk.sender->fd());
    port_->poller()->Remove(bulk.token, bulk.sender->fd());
    bulk.sender->Reset();
  }
  return true;
}

// ---- connections ----

void TcpSendLink::Open(const Endpoint& remote_rail, const Hello& hello) {
  const auto to = AddressOf(remote_rail);
  if (!to) return Trouble(EvidenceCause::kLinkDown);
  const auto sockets = static_cast<uint8_t>(streams_begin() + port_->streams_per_rail());
  Hello path_hello = hello;
  for (int i = -1; i < sockets; ++i) {
    path_hello.endpoint = PathEndpointOf({i < 0, static_cast<uint8_t>(std::max(i, 0)), sockets});
    hello_bytes_ = Encode(path_hello).size();
    int failure = 0;
    UniqueFd fd = Connect(port_->source(name_.local_rail), *to, i < 0 ? SocketUse::kControl : SocketUse::kBulk, &failure);
    if (!fd) port_->CannotConnect(failure);
    if (!fd) return Trouble(EvidenceCause::kSocketError);
    connectors_.push_back(
        std::make_unique<Connector>(port_->poller(), std::move(fd), Encode(path_hello),
                                    [this, i](Connector::Outcome outcome, const HelloReply& reply, std::unique_ptr<PacketStream> stream) {
                                      if (outcome == Connector::Outcome::kGarbled) return Trouble(EvidenceCause::kGarbled);
                                      if (outcome != Connector::Outcome::kReplied) return Trouble(EvidenceCause::kSocketError);
                                      if (!reply.accepted) return Trouble(EvidenceCause::kPeerFenced);
                                      Greeted(i, std::move(stream));
                                    }));
  }
  bulk_.resize(sockets);
}

void TcpSendLink::Greeted(int socket, std::unique_ptr<PacketStream> stream) {
  if (socket < 0) {
    control_.Open(std::move(stream));
  } else {
    const auto index = static_cast<size_t>(socket);
    Bulk& bulk = bulk_[index];
    bulk.sender = std::make_unique<BulkSender>(stream->Release(), port_->key().tag, port_->checksum());
    LimitQueue(*bulk.sender);
    // Edge-triggered: room is told of once, when it comes after the socket was full.
    bulk.token =
        port_->poller()->Add(bulk.sender->fd(), EPOLLIN | EPOLLOUT | EPOLLET, [this, index](uint32_t events) { BulkEvent(index, events); });
  }
  if (control_.open() && std::all_of(bulk_.begin(), bulk_.end(), [](const Bulk& bulk) { return bulk.sender != nullptr; }))
    owner_->Connected(name_);
}

void TcpSendLink::BulkEvent(size_t index, uint32_t events) {
  Bulk& bulk = bulk_[index];
  if (events & (EPOLLIN | EPOLLERR | EPOLLHUP)) {
    // Nothing is ever sent to us here: an end or an error is all there can be to read.
    char byte;
    const ssize_t n = recv(bulk.sender->fd(), &byte, 1, MSG_DONTWAIT);
    if (n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
      return Trouble(n > 0 ? EvidenceCause::kGarbled : EvidenceCause::kSocketError);
  }
  if (events & EPOLLOUT) {
    bulk.blocked = false;
    owner_->Ready(name_);
  }
}

// ---- chunks ----

void TcpSendLink::Prove() {
  for (size_t i = 0; i < bulk_.size(); ++i) {
    Bulk& bulk = bulk_[i];
    bulk.proof_offsets = ProofOffsets(StatsOf(bulk.sender->fd()));
    bulk.sender->SendProof(ProofPattern(port_->key().session, name_.link, name_.incarnation, static_cast<uint8_t>(i)), bulk.proof_offsets);
    bulk.blocked = false;
  }
  owner_->Ready(name_);
}

bool TcpSendLink::Load(size_t index) {
  Bulk& bulk = bulk_[index];
  if (bulk.sender->AnyUnsent([this](const Chunk& chunk) { return !owner_->Expects(chunk); })) {
    // Acknowledged before it was sent: the peer breaks the protocol, and the copy behind the chunk is gone.
    Trouble(EvidenceCause::kGarbled);
    bulk.blocked = true;
    return false;
  }
  // What leaves together is committed to this link as what the kernel queues is.
  uint64_t pulled_bytes = 0;
  const uint32_t most_bytes = budget_.call_bytes(bulk.ownership.by_worker());
  const auto pull = [&](Chunk* chunk) {
    if (!takes_chunks(index) || pulled_bytes >= most_bytes || !owner_->Pull(name_, chunk)) return false;
    pulled_bytes += chunk->bytes;
    return true;
  };
  bulk.blocked = false;
  return bulk.sender->Load(pull, advice_.spread ? 1 : BulkSender::kTogetherMost);
}

bool TcpSendLink::Wrote(size_t index, BulkSender::Result result, uint64_t sent_bytes) {
  *carried_ += sent_bytes;
  if (result == BulkSender::Result::kBroken) Trouble(EvidenceCause::kSocketError);
  bulk_[index].blocked = result != BulkSender::Result::kMore;
  return result == BulkSender::Result::kMore;
}

bool TcpSendLink::PumpSocket(size_t index) {
  if (!Load(index)) return false;
  uint64_t sent_bytes = 0;
  const BulkSender::Result result = bulk_[index].sender->Write(&sent_bytes);
  return Wrote(index, result, sent_bytes);
}

SendLink::Room TcpSendLink::Pump(int most, bool retry) {
  Room room = Room::kNone;
  for (size_t i = 0; i < bulk_.size(); ++i) {
    Bulk& bulk = bulk_[i];
    if (!bulk.ours() || (bulk.blocked && !retry)) continue;
    // What was begun goes on first.
    if (bulk.sender->busy() && !PumpSocket(i)) continue;
    if (has_workers()) continue;
    if (most == 0) {
      room = Room::kLeft;
      continue;
    }
    for (int sent = 0; PumpSocket(i);)
      if (++sent == most) return Room::kLeft;
  }
  return room;
}

bool TcpSendLink::busy() const {
  return std::any_of(bulk_.begin(), bulk_.end(), [](const Bulk& bulk) { return bulk.ours() && bulk.sender->busy(); });
}

SendLink::Sent TcpSendLink::SendNow(FunctionRef<bool(Chunk*)> post) {
  if (bulk_.empty()) return Sent::kNot;
  Bulk& bulk = bulk_.front();
  // A worker may be at its call: nothing of the sender is looked at before it is known that there is none.
  if (!bulk.ours() || bulk.sender->busy()) return Sent::kNot;
  Chunk chunk;
  if (!post(&chunk)) return Sent::kNot;
  bulk.sender->Load(chunk);
  uint64_t sent_bytes = 0;
  const BulkSender::Result result = bulk.sender->Write(&sent_bytes);
  Wrote(0, result, sent_bytes);
  return bulk.sender->busy() ? Sent::kBufferInUse : Sent::kBufferFree;
}

void TcpSendLink::Retarget(FlowId flow, MessageId message, const std::byte* copy) {
  // A worker has not seen a message that was posted while the lock was held.
  for (Bulk& bulk : bulk_)
    if (bulk.ours() && bulk.sender->busy()) bulk.sender->Retarget(flow, message, copy);
}

bool TcpSendLink::Holds(FlowId flow) {
  if (closed_) return false;
  for (const Bulk& bulk : bulk_) bulk.ownership.Await();
  return std::any_of(bulk_.begin(), bulk_.end(), [flow](const Bulk& bulk) {
    return bulk.sender != nullptr && bulk.sender->AnyUnsent([flow](const Chunk& chunk) { return chunk.flow == flow; });
  });
}

// ---- how much each socket takes ----

PathFacts TcpSendLink::FactsOf(const Bulk& bulk, const TcpStats& stats) const {
  PathFacts facts{.delivered_bytes = stats.delivered_bytes,
                  .unacknowledged = stats.unacknowledged,
                  .window_open = stats.window_open,
                  .timeouts = stats.timeouts,
                  .packet_bytes = stats.packet_bytes};
  uint32_t bytes = 0;
  for (const size_t offset : bulk.proof_offsets) {
    if (stats.delivered_bytes < hello_bytes_ + offset) break;
    facts.passed_packet_bytes = kProofPacketBytes[bytes++];
  }
  return facts;
}

LinkFacts TcpSendLink::Measure() {
  LinkFacts facts;
  Nanos round_trip = 0;
  // A connection that the peer has not greeted yet waits, whatever its kernel says.
  const auto opening = [this](size_t index) {
    const int fd = index < connectors_.size() ? connectors_[index]->fd() : -1;
    const TcpStats stats = fd < 0 ? TcpStats{} : StatsOf(fd);
    return PathFacts{.delivered_bytes = stats.delivered_bytes, .unacknowledged = true, .timeouts = stats.timeouts};
  };
  PathFacts control = opening(0);
  if (control_.open()) {
    const TcpStats stats = StatsOf(control_.fd());
    control = {stats.delivered_bytes, stats.unacknowledged, stats.window_open, stats.timeouts};
  }
  control.control = true;
  facts.paths.push_back(control);
  for (size_t i = 0; i < bulk_.size(); ++i) {
    const Bulk& bulk = bulk_[i];
    if (bulk.sender == nullptr) {
      facts.paths.push_back(opening(i + 1));
      continue;
    }
    const TcpStats stats = StatsOf(bulk.sender->fd());
    facts.paths.push_back(FactsOf(bulk, stats));
    facts.delivered_bytes += stats.delivered_bytes;
    // Several sockets share the rail at the same time.
    facts.busy = std::max<Nanos>(facts.busy, stats.busy_ns);
    facts.limited |= stats.unsent || bulk.blocked;
    round_trip = std::max<Nanos>(round_trip, stats.round_trip_ns);
  }
  round_trip_ = round_trip;
  return facts;
}

void TcpSendLink::Advise(const LinkAdvice& advice) {
  advice_ = advice;
  const Budget budget = BudgetOf({advice.rate_bytes_per_s, round_trip_, advice.spread, port_->streams_per_rail()});
  budget_.sockets = budget.sockets;
  if (IsNear(budget.unsent_bytes, budget_.unsent_bytes) && IsNear(budget.held_bytes, budget_.held_bytes)) return;
  budget_ = budget;
  for (const Bulk& bulk : bulk_)
    if (bulk.sender != nullptr) LimitQueue(*bulk.sender);
}

void TcpSendLink::LimitQueue(const BulkSender& sender) const {
  LimitUnsent(sender.fd(), budget_.unsent_bytes);
  LimitHeld(sender.fd(), budget_.held_bytes);
}

// ---- workers ----

class TcpSendLink::Task final : public IoTask {
 public:
  Task(TcpSendLink* link, size_t index) : IoTask(link->owner_), link_(link), index_(index), sender_(link->bulk_[index].sender.get()) {}

 private:
  bool Prepare() override {
    if (!mine()) return false;
    ownership().set_pending(false);
    if (calls_++ == tuning::kTurnCalls) {
      calls_ = 0;
      ownership().Wake(link_->port_->workers());
      return false;
    }
    if (!link_->Load(index_)) {
      calls_ = 0;
      return false;
    }
    sender_->ForEachUnsent([this](const Chunk& chunk) {
      if (chunk.eager) copies_.push_back(link_->owner_->CopyOf(chunk));
    });
    return true;
  }
  void Call() override {
    sent_bytes_ = 0;
    result_ = sender_->Write(&sent_bytes_);
  }
  bool Commit() override {
    copies_.clear();
    if (!mine()) return false;
    const bool on = link_->Wrote(index_, result_, sent_bytes_);
    if (on)
      ownership().set_pending(true);
    else
      calls_ = 0;
    return on;
  }
  void Detach() override { link_ = nullptr; }

  SocketOwnership& ownership() const { return link_->bulk_[index_].ownership; }
  bool mine() const { return link_ != nullptr && ownership().is(this); }

  TcpSendLink* link_;
  const size_t index_;
  BulkSender* const sender_;
  std::vector<std::shared_ptr<const std::byte[]>> copies_;  // of the eager messages that it sends
  BulkSender::Result result_ = BulkSender::Result::kIdle;
  uint64_t sent_bytes_ = 0;
  int calls_ = 0;
};

bool TcpSendLink::has_workers() const { return port_->workers() != nullptr; }

void TcpSendLink::Start() {
  if (!has_workers()) return;
  const size_t streams = port_->streams_per_rail();
  for (size_t i = streams_begin(); i < bulk_.size(); ++i) {
    Bulk& bulk = bulk_[i];
    const int fd = bulk.sender->fd();
    port_->poller()->Modify(bulk.token, fd, EPOLLIN | EPOLLET);
    bulk.ownership.HandOver(port_->workers(), Workers::Way::kSend, name_.local_rail * streams + i - streams_begin(), fd,
                            std::make_shared<Task>(this, i));
  }
}

uint32_t TcpSendLink::ChunksTogether() const {
  if (advice_.spread || advice_.chunk_bytes == 0) return 1;
  return std::clamp<uint32_t>(budget_.call_bytes(true) / advice_.chunk_bytes, 1, BulkSender::kTogetherMost);
}

uint32_t TcpSendLink::Coming() {
  uint32_t chunks = 0;
  // Who makes a call looks for more after it.
  for (size_t i = streams_begin(); i < streams_end(); ++i) chunks += bulk_[i].ownership.pending() ? ChunksTogether() : 0;
  return chunks;
}

void TcpSendLink::OfferChunks(FunctionRef<bool(uint32_t chunks)> claim) {
  for (size_t i = streams_begin(); i < streams_end(); ++i) {
    Bulk& bulk = bulk_[i];
    const bool idle = bulk.ownership.by_worker() && !bulk.ownership.pending() && !bulk.blocked && !bulk.ownership.calling();
    if (idle && claim(ChunksTogether())) bulk.ownership.Wake(port_->workers());
  }
}

}  // namespace r2cc::net
