#include "netplugin/transport/tcp/recv_link.h"

#include <sys/epoll.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/core/check.h"
#include "netplugin/flow/mutant.h"
#include "netplugin/flow/tuning.h"
#include "netplugin/transport/tcp/astray.h"
#include "netplugin/transport/tcp/endpoint.h"
#include "netplugin/transport/tcp/tcp_connection.h"
#include "netplugin/transport/tcp/tcp_port.h"

namespace r2cc::net {
namespace {

using plan::EvidenceCause;
using Look = BulkReceiver::Look;

}  // namespace

TcpRecvLink::TcpRecvLink(TcpPort* port, const LinkName& name, RecvOwner* owner, Counter* carried)
    : port_(port), name_(name), owner_(owner), carried_(carried), control_(port->poller(), port->key().tag, SinkOf(owner, name)) {
  port_->Add(this);
}

TcpRecvLink::~TcpRecvLink() { R2CC_CHECK(closed_); }

bool TcpRecvLink::Close() {
  closed_ = true;
  port_->Remove(this);
  control_.Reset();
  for (Bulk& bulk : bulk_) {
    if (bulk.receiver == nullptr) continue;
    bulk.ownership.End(port_->workers(), bulk.receiver->fd());
    port_->poller()->Remove(bulk.token, bulk.receiver->fd());
    bulk.receiver->Reset();
  }
  return true;
}

// ---- connections ----

bool TcpRecvLink::Attach(const Hello& hello, const HelloReply& reply, std::unique_ptr<Connection>* greeted, bool* control,
                         std::string* reason) {
  const auto refuse = [reason](const char* why) {
    *reason = why;
    return false;
  };
  const auto path = PathOf(hello.endpoint);
  if (!path || (!bulk_.empty() && path->sockets != bulk_.size())) return refuse("no such link");
  PacketStream& stream = AsTcp(**greeted).stream();
  const Source& rail = port_->rail(name_.local_rail);
  // A node may answer on one rail for the address of another: what looks like a cross-rail link then is none. Rails of the same number are
  // joined however the packets go, which sockets that are tied to an interface would not hear of.
  if (const int incoming = rail.interface.empty() ? 0 : IncomingInterface(stream.fd());
      incoming != 0 && IsAstray(incoming, rail.interface)) {
    if (!name_.home) return refuse("it came in by another interface than that of its rail");
    port_->Untie(name_.local_rail, incoming);
  }
  bulk_.resize(path->sockets);
  if (path->control && control_.open()) return refuse("the link has its control channel already");
  if (!path->control && bulk_[path->socket].receiver != nullptr) return refuse("the link has this bulk socket already");
  Prepare(stream.fd(), path->control ? SocketUse::kControl : SocketUse::kBulk, port_->source(name_.local_rail).interface);
  // The answer is the first thing on the connection. One that cannot take it has broken: the initiator will try again.
  if (!stream.Send(Encode(reply)) || stream.wants_write()) return refuse("the connection has broken");
  std::unique_ptr<PacketStream> taken = AsTcp(**greeted).Take();
  greeted->reset();
  if (path->control) {
    control_.Open(std::move(taken));
    *control = true;
    return true;
  }
  bulk_[path->socket].receiver = std::make_unique<BulkReceiver>(
      taken->Release(), port_->key().tag, ProofPattern(port_->key().session, name_.link, name_.incarnation, path->socket));
  Watch(path->socket);
  return true;
}

// ---- chunks ----

bool TcpRecvLink::Poll(FlowId wanted) {
  if (bulk_.empty()) return false;
  // Small messages keep to the first socket; where there is bulk any may carry the next, and the last one does most likely.
  const bool all = port_->state().bulk;
  const size_t* const last = all ? last_socket_.Find(wanted) : nullptr;
  const size_t first = last == nullptr ? 0 : *last;
  for (size_t i = 0; i < (all ? bulk_.size() : 1); ++i) {
    const size_t index = (first + i) % bulk_.size();
    if (!bulk_[index].ours() || !Read(index)) continue;
    Found(&bulk_[index]);
    return true;
  }
  return false;
}

void TcpRecvLink::ReadMore() {
  for (size_t i = 0; i < bulk_.size(); ++i)
    if (bulk_[i].more && bulk_[i].ours()) Read(i);
}

bool TcpRecvLink::Read(size_t index) {
  Bulk& bulk = bulk_[index];
  bulk.more = false;
  const Look look = port_->state().jobs_thread ? Look::kAhead : Look::kInPlace;
  // Most looks find nothing.
  if (!owner_->Alive(name_) || !bulk.receiver->Fetch(look)) return false;
  return Reading(
      index, [&](const BulkReceiver::Sink& sink, uint64_t* received_bytes) { return bulk.receiver->ReadOn(sink, look, received_bytes); });
}

bool TcpRecvLink::Reading(size_t index, FunctionRef<BulkReceiver::Result(const BulkReceiver::Sink&, uint64_t* received_bytes)> read) {
  const auto begin = [this](const Chunk& chunk, std::byte** destination) { return owner_->Begin(name_, chunk, destination); };
  bool placed = false;  // there are messages without a byte
  const auto finish = [&](const Chunk& chunk) {
    placed = true;
    owner_->Finish(name_, chunk);
    if (port_->state().bulk) *last_socket_.Add(chunk.flow) = index;
  };
  bool proved = false, again = false;
  const auto proof = [&](bool ok) {
    size_t of = index;
    while (IsActive(Mutant::kProofsPerLink) && bulk_[of].proved && of + 1 < bulk_.size()) ++of;
    again |= std::exchange(bulk_[of].proved, true);
    proved_ = proved_ && ok;
    if (again || !whole()) return;
    proved = true;
    owner_->Proved(name_, proved_);
  };
  uint64_t received_bytes = 0;
  const BulkReceiver::Result result = read({begin, finish, proof}, &received_bytes);
  *carried_ += received_bytes;
  Bulk& bulk = bulk_[index];
  bulk.more = result == BulkReceiver::Result::kMore;
  if (bulk.more && bulk.ours()) owner_->Ready(name_);
  if (placed)
    if (const std::optional<bool> late = bulk.quick_ack.Read(port_->state().bulk)) DelayAcknowledgements(bulk.receiver->fd(), *late);
  if (result == BulkReceiver::Result::kBroken) Trouble(EvidenceCause::kSocketError);
  if (result == BulkReceiver::Result::kGarbled || again) Trouble(EvidenceCause::kGarbled);
  if (proved) GiveToWorkers();
  return placed || received_bytes > 0;
}

bool TcpRecvLink::Forget(FlowId flow) {
  for (Bulk& bulk : bulk_) {
    if (bulk.receiver == nullptr) continue;
    if (!IsActive(Mutant::kCloseDoesNotWait)) bulk.ownership.Await();
    bulk.receiver->Forget(flow);
  }
  last_socket_.Erase(flow);
  return true;
}

// ---- who looks at a socket ----

void TcpRecvLink::Watch(size_t index) {
  Bulk& bulk = bulk_[index];
  bulk.token = port_->poller()->Add(bulk.receiver->fd(), EPOLLIN, [this, index](uint32_t) { Read(index); });
  bulk.found = 0;
}

void TcpRecvLink::Found(Bulk* bulk) {
  if (bulk->token == 0 || ++bulk->found < tuning::kFoundEnough) return;
  port_->poller()->Remove(std::exchange(bulk->token, 0), bulk->receiver->fd());
  port_->set_unwatched();
}

void TcpRecvLink::ReadUnwatched() {
  for (size_t i = 0; i < bulk_.size(); ++i)
    if (bulk_[i].unwatched()) Read(i);
}

void TcpRecvLink::WatchAll() {
  for (size_t i = 0; i < bulk_.size(); ++i)
    if (bulk_[i].unwatched()) Watch(i);
}

// ---- workers ----

class TcpRecvLink::Task final : public IoTask {
 public:
  Task(TcpRecvLink* link, size_t index) : IoTask(link->owner_), link_(link), index_(index), receiver_(link->bulk_[index].receiver.get()) {}

 private:
  bool Prepare() override {
    if (!mine() || !link_->owner_->Alive(link_->name_)) return false;
    if (calls_++ < tuning::kTurnCalls) return true;
    calls_ = 0;
    ownership().Wake(link_->port_->workers());
    return false;
  }
  // The buffer is the kernel's to write only: see BulkReceiver::Read.
  void Call() override { receiver_->Fetch(Look::kInPlace); }
  bool Commit() override {
    if (!mine() || !link_->owner_->Alive(link_->name_)) return false;
    link_->Reading(index_,
                   [this](const BulkReceiver::Sink& sink, uint64_t* received_bytes) { return receiver_->Take(sink, received_bytes); });
    if (link_->bulk_[index_].more) return true;
    calls_ = 0;
    return false;
  }
  void Detach() override { link_ = nullptr; }

  SocketOwnership& ownership() const { return link_->bulk_[index_].ownership; }
  bool mine() const { return link_ != nullptr && ownership().is(this); }

  TcpRecvLink* link_;
  const size_t index_;
  BulkReceiver* const receiver_;
  int calls_ = 0;
};

void TcpRecvLink::GiveToWorkers() {
  if (port_->workers() == nullptr || !owner_->Alive(name_)) return;
  for (size_t i = 1; i < bulk_.size(); ++i) {
    Bulk& bulk = bulk_[i];
    const int fd = bulk.receiver->fd();
    port_->poller()->Remove(std::exchange(bulk.token, 0), fd);
    bulk.ownership.HandOver(port_->workers(), Workers::Way::kReceive, name_.local_rail * (bulk_.size() - 1) + i - 1, fd,
                            std::make_shared<Task>(this, i));
  }
}

}  // namespace r2cc::net
