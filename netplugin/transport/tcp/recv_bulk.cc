// RecvPeer's bulk sockets: who reads them, and where what is read goes.
#include <sys/epoll.h>

#include <memory>
#include <optional>
#include <utility>

#include "netplugin/transport/tcp/recv_peer.h"

namespace r2cc::net {
namespace {

using plan::EvidenceCause;
using Look = BulkReceiver::Look;

// Whoever has found something so often by looking need not be told: the kernel does that for each packet, and on loopback in the sender's
// own call.
constexpr int kFoundEnough = 4;

}  // namespace

bool RecvPeer::ReadBulk(LinkId link, size_t index) {
  Bulk& bulk = links_[link].bulk[index];
  bulk.more = false;
  // A socket that the poller has must not stay readable.
  const bool leave = jobs_turn() && bulk.unwatched() && bulk.pace.late();
  const Look look = leave ? Look::kLeave : jobs_turn() ? Look::kAhead : Look::kInPlace;
  // Most looks find nothing.
  if (!Lives(link) || !bulk.receiver->Fetch(look)) return false;
  return Reading(link, index, [&](const BulkReceiver::Sink& sink, uint64_t* received_bytes) {
    return bulk.receiver->ReadOn(
        sink, look, [this] { return crew_is_due(); }, received_bytes);
  });
}

bool RecvPeer::Reading(LinkId link, size_t index,
                       FunctionRef<BulkReceiver::Result(const BulkReceiver::Sink&, uint64_t* received_bytes)> read) {
  LinkSockets& sockets = links_[link];
  const auto begin = [&](const Chunk& chunk, std::byte** destination) {
    if (!session_.Begin(link, sockets.incarnation, chunk, destination)) return false;
    // The header tells what comes: a crew that waited for the payload would miss most of it.
    if (*destination != nullptr) Count(chunk.message_bytes, chunk.bytes);
    return true;
  };
  bool placed = false;  // there are messages without a byte
  const auto finish = [&](const Chunk& chunk) {
    placed = true;
    session_.Finish(link, sockets.incarnation, chunk);
    Receiving* const receiving = comms_.Find(chunk.flow);
    if (receiving == nullptr) return;
    receiving->link = link;
    receiving->socket = index;
  };
  const auto proof = [&](bool ok) {
    sockets.proved = sockets.proved && ok;
    ++sockets.proofs;
    if (sockets.whole()) session_.Proved(link, sockets.incarnation, sockets.proved);
  };
  uint64_t received_bytes = 0;
  const BulkReceiver::Result result = read({begin, finish, proof}, &received_bytes);
  io_->rails[session_.local_rail(link)].received_bytes += received_bytes;
  Bulk& bulk = sockets.bulk[index];
  bulk.more = result == BulkReceiver::Result::kMore;
  unread_ |= bulk.more && !bulk.hire.on();
  if (placed)
    if (const std::optional<bool> late = bulk.pace.Read(has_bulk())) DelayAcknowledgements(bulk.receiver->fd(), *late);
  if (result == BulkReceiver::Result::kBroken) Trouble(link, EvidenceCause::kSocketError);
  if (result == BulkReceiver::Result::kGarbled) Trouble(link, EvidenceCause::kGarbled);
  return placed || received_bytes > 0;
}

void RecvPeer::WatchBulk(LinkId link, size_t index) {
  Bulk& bulk = links_[link].bulk[index];
  bulk.receiver->TakeLeft();
  bulk.token = poller_.Add(bulk.receiver->fd(), EPOLLIN, [this, link, index](uint32_t) { ReadBulk(link, index); });
  bulk.found = 0;
}

void RecvPeer::Found(Bulk* bulk) {
  if (bulk->token == 0 || ++bulk->found < kFoundEnough) return;
  poller_.Remove(std::exchange(bulk->token, 0), bulk->receiver->fd());
  unwatched_ = true;
}

void RecvPeer::ReadUnwatched() {
  if (!unwatched_) return;
  for (LinkId link = 0; link < links_.size(); ++link)
    for (size_t i = 0; i < links_[link].bulk.size(); ++i)
      if (links_[link].bulk[i].unwatched()) ReadBulk(link, i);
}

void RecvPeer::WatchAll() {
  if (!std::exchange(unwatched_, false)) return;
  for (LinkId link = 0; link < links_.size(); ++link)
    for (size_t i = 0; i < links_[link].bulk.size(); ++i)
      if (links_[link].bulk[i].unwatched()) WatchBulk(link, i);
}

// ---- movers ----

class RecvPeer::BulkErrand final : public Errand {
 public:
  BulkErrand(std::shared_ptr<RecvPeer> peer, LinkId link, size_t index)
      : Errand(peer), peer_(peer.get()), link_(link), index_(index), receiver_(peer->links_[link].bulk[index].receiver.get()) {}

  bool Prepare() override {
    if (!mine() || !peer_->Lives(link_)) return false;
    if (calls_++ < kCallsTogether) return true;
    calls_ = 0;
    bulk().hire.Call(peer_->io_->movers);
    return false;
  }
  // The buffer is the kernel's to write only: see BulkReceiver::Read.
  void Call() override { receiver_->Fetch(Look::kInPlace); }
  bool Commit() override {
    if (!mine() || !peer_->Lives(link_)) return false;
    peer_->Reading(link_, index_,
                   [this](const BulkReceiver::Sink& sink, uint64_t* received_bytes) { return receiver_->Take(sink, received_bytes); });
    if (bulk().more) return true;
    calls_ = 0;
    return false;
  }

 private:
  Bulk& bulk() const { return peer_->links_[link_].bulk[index_]; }
  bool mine() const { return index_ < peer_->links_[link_].bulk.size() && bulk().hire.is(this); }

  RecvPeer* const peer_;
  const LinkId link_;
  const size_t index_;
  BulkReceiver* const receiver_;
  int calls_ = 0;
};

void RecvPeer::Crew(bool wanted) {
  for (LinkId link = 0; link < links_.size(); ++link) {
    LinkSockets& sockets = links_[link];
    for (size_t i = 0; i < sockets.bulk.size(); ++i) {
      Bulk& bulk = sockets.bulk[i];
      if (bulk.receiver == nullptr || bulk.hire.on() == wanted) continue;
      const int fd = bulk.receiver->fd();
      if (wanted && sockets.whole() && Lives(link)) {
        poller_.Remove(std::exchange(bulk.token, 0), fd);
        bulk.hire.Begin(io_->movers, Movers::Way::kReceive, session_.local_rail(link) * sockets.bulk.size() + i, fd,
                        std::make_shared<BulkErrand>(std::static_pointer_cast<RecvPeer>(shared_from_this()), link, i));
      } else if (!wanted) {
        bulk.hire.Dismiss(io_->movers, fd);
        WatchBulk(link, i);
      }
    }
  }
}

}  // namespace r2cc::net
