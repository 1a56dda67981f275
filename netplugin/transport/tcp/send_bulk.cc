// SendPeer's bulk sockets: which of them takes the next chunk, and how much each may queue.
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "netplugin/flow/stripe.h"
#include "netplugin/transport/tcp/send_peer.h"

namespace r2cc::net {
namespace {

using plan::EvidenceCause;

constexpr int kTurnChunks = 32;  // leave before input is looked at again
constexpr Nanos kSampleEvery = 25 * kNanosPerMs;

}  // namespace

void SendPeer::SampleRates(Nanos now) {
  if (now - sampled_ < kSampleEvery) return;
  sampled_ = now;
  const bool bulk = std::exchange(sampled_bulk_, has_bulk()) && has_bulk();
  for (LinkId link = 0; link < links_.size(); ++link) {
    if (session_.link_state(link) != InitiatorState::kUp) continue;
    const Account account = links_[link].Measure();
    session_.LinkRate(link, links_[link].incarnation, account.delivered_bytes, account.busy_ns, bulk, now);
  }
  LimitQueues();
}

// A full queue is good for speed while flows keep to their rails; a rail that is dealt chunks must not take more than it can carry.
void SendPeer::LimitQueues() {
  spread_ = session_.spread();
  for (LinkId link = 0; link < links_.size(); ++link) links_[link].Adapt(session_.rate_bytes_per_s(link), spread_);
}

bool SendPeer::PumpAll() {
  room_ = false;
  ready_.clear();
  for (LinkId link = 0; link < links_.size(); ++link)
    for (size_t i = 0; i < links_[link].bulk.size(); ++i)
      // What was begun goes on first.
      if (links_[link].bulk[i].has_room() && (!links_[link].bulk[i].sender->busy() || PumpBulk(link, i))) ready_.emplace_back(link, i);
  for (int chunks = 0; chunks < kTurnChunks;) {
    if (ready_.empty() || !session_.ready()) return false;
    const auto next = std::min_element(ready_.begin(), ready_.end(),
                                       [this](const auto& a, const auto& b) { return session_.Load(a.first) < session_.Load(b.first); });
    if (PumpBulk(next->first, next->second))
      ++chunks;
    else
      ready_.erase(next);
  }
  room_ = true;
  return true;
}

void SendPeer::PumpHome(FlowId flow) {
  const LinkId home = session_.home(flow);
  if (session_.spread() || home >= links_.size()) return;
  for (size_t i = 0; i < links_[home].bulk.size(); ++i) {
    const SendLink::Bulk& bulk = links_[home].bulk[i];
    for (int chunks = 0; chunks < kTurnChunks && bulk.sender != nullptr && !bulk.hire.on(); ++chunks)
      // Trying is cheaper than asking the poller whether there is room again.
      if (!(session_.ready() || bulk.sender->busy()) || !PumpBulk(home, i)) break;
  }
}

bool SendPeer::SendAtOnce(FlowId flow, const void* data, uint64_t bytes) {
  const LinkId home = session_.home(flow);
  if (home >= links_.size() || links_[home].bulk.empty()) return false;
  SendLink& sockets = links_[home];
  SendLink::Bulk& bulk = sockets.bulk.front();
  // A mover may be at its call: nothing of the sender is looked at before it is known that there is none.
  if (bulk.sender == nullptr || bulk.hire.on() || bulk.sender->busy()) return false;
  Chunk chunk;
  if (!session_.PostEagerly(flow, data, bytes, sockets.incarnation, &chunk)) return false;
  Moves(bytes);
  bulk.sender->Load(chunk);
  uint64_t sent_bytes = 0;
  const BulkSender::Result result = bulk.sender->Write(&sent_bytes);
  WroteBulk(home, 0, result, sent_bytes);
  // First it travels, then it is copied: the peer need not wait for that.
  const std::byte* copy = session_.Release(flow, chunk.message);
  if (bulk.sender->busy()) bulk.sender->Rebase(flow, chunk.message, copy);
  return true;
}

void SendPeer::BulkEvent(LinkId link, size_t index, uint32_t events) {
  SendLink::Bulk& bulk = links_[link].bulk[index];
  if (events & (EPOLLIN | EPOLLERR | EPOLLHUP)) {
    // Nothing is ever sent to us here: an end or an error is all there can be to read.
    char byte;
    const ssize_t n = recv(bulk.sender->fd(), &byte, 1, MSG_DONTWAIT);
    if (n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
      return Trouble(link, n > 0 ? EvidenceCause::kGarbled : EvidenceCause::kSocketError);
  }
  if (events & EPOLLOUT) {
    bulk.blocked = false;
    room_ = true;
  }
}

bool SendPeer::LoadBulk(LinkId link, size_t index) {
  SendLink& sockets = links_[link];
  SendLink::Bulk& bulk = sockets.bulk[index];
  if (bulk.sender->AnyUnsent([this](const Chunk& chunk) { return !session_.Expects(chunk); })) {
    // Acknowledged before it was sent: the peer breaks the protocol, and the copy behind the chunk is gone.
    Trouble(link, EvidenceCause::kGarbled);
    bulk.blocked = true;
    return false;
  }
  // What leaves together is committed to this link as what the kernel queues is.
  uint64_t pulled_bytes = 0;
  const uint32_t most_bytes = CallBytes(sockets.limit_bytes(), bulk.hire.on());
  const auto pull = [&](Chunk* chunk) {
    if (index >= sockets.in_use() || pulled_bytes >= most_bytes || !session_.Pull(link, sockets.incarnation, chunk)) return false;
    pulled_bytes += chunk->bytes;
    Moves(chunk->message_bytes);
    return true;
  };
  bulk.blocked = false;
  return bulk.sender->Load(pull, session_.spread() ? 1 : BulkSender::kTogetherMost);
}

bool SendPeer::WroteBulk(LinkId link, size_t index, BulkSender::Result result, uint64_t sent_bytes) {
  io_->rails[session_.local_rail(link)].sent_bytes += sent_bytes;
  if (result == BulkSender::Result::kBroken) Trouble(link, EvidenceCause::kSocketError);
  links_[link].bulk[index].blocked = result != BulkSender::Result::kMore;
  return result == BulkSender::Result::kMore;
}

bool SendPeer::PumpBulk(LinkId link, size_t index) {
  if (!LoadBulk(link, index)) return false;
  uint64_t sent_bytes = 0;
  const BulkSender::Result result = links_[link].bulk[index].sender->Write(&sent_bytes);
  return WroteBulk(link, index, result, sent_bytes);
}

// ---- movers ----

class SendPeer::BulkErrand final : public Errand {
 public:
  BulkErrand(std::shared_ptr<SendPeer> peer, LinkId link, size_t index)
      : Errand(peer), peer_(peer.get()), link_(link), index_(index), sender_(peer->links_[link].bulk[index].sender.get()) {}

  bool Prepare() override {
    if (!mine()) return false;
    hire().Came();
    if (calls_++ == kCallsTogether) {
      calls_ = 0;
      hire().Call(peer_->io_->movers);
      return false;
    }
    if (!peer_->LoadBulk(link_, index_)) {
      calls_ = 0;
      return false;
    }
    sender_->ForEachUnsent([this](const Chunk& chunk) {
      if (chunk.eager) copies_.push_back(peer_->session_.Copy(chunk));
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
    const bool on = peer_->WroteBulk(link_, index_, result_, sent_bytes_);
    if (on)
      hire().Comes();
    else
      calls_ = 0;
    // A small message goes by one rail: who was not called, as this mover was on its way, may have one that this one may not send.
    if (peer_->session_.shared()) peer_->StirAll();
    return on;
  }

 private:
  Hire& hire() const { return peer_->links_[link_].bulk[index_].hire; }
  bool mine() const {
    const SendLink& link = peer_->links_[link_];
    return index_ < link.bulk.size() && link.bulk[index_].hire.is(this);
  }

  SendPeer* const peer_;
  const LinkId link_;
  const size_t index_;
  BulkSender* const sender_;
  std::vector<std::shared_ptr<const std::byte[]>> copies_;  // of the eager messages that it sends
  BulkSender::Result result_ = BulkSender::Result::kIdle;
  uint64_t sent_bytes_ = 0;
  int calls_ = 0;
};

void SendPeer::Crew(bool wanted) {
  for (LinkId link = 0; link < links_.size(); ++link) {
    for (size_t i = 0; i < links_[link].bulk.size(); ++i) {
      SendLink::Bulk& bulk = links_[link].bulk[i];
      if (bulk.sender == nullptr || bulk.hire.on() == wanted) continue;
      const int fd = bulk.sender->fd();
      if (wanted && session_.link_state(link) == InitiatorState::kUp) {
        poller_.Modify(bulk.token, fd, EPOLLIN | EPOLLET);
        if (bulk.hire.Resume()) {
          // That there is room may have been told to whoever wrote until now.
          bulk.blocked = false;
          links_[link].stirred = true;
          if (bulk.sender->busy()) bulk.hire.Call(io_->movers);
          continue;
        }
        bulk.hire.Begin(io_->movers, Movers::Way::kSend, session_.local_rail(link) * links_[link].bulk.size() + i, fd,
                        std::make_shared<BulkErrand>(std::static_pointer_cast<SendPeer>(shared_from_this()), link, i));
      } else if (!wanted) {
        bulk.hire.Rest();
        poller_.Modify(bulk.token, fd, EPOLLIN | EPOLLOUT | EPOLLET);
        bulk.blocked = false;
        room_ = true;
      }
    }
  }
}

void SendPeer::Stir(LinkId link) {
  if (session_.spread()) return StirAll();
  if (link < links_.size()) links_[link].stirred = true;
}

void SendPeer::StirAll() {
  for (SendLink& link : links_) link.stirred = true;
}

// No more of them than there are calls to make: who wakes up for nothing has cost two processors something, and the caller's is NCCL's.
void SendPeer::CallMovers() {
  if (!crewed() || !session_.ready()) return;
  const bool shared = session_.shared();
  size_t coming = 0;
  ready_.clear();
  for (LinkId link = 0; link < links_.size(); ++link) {
    if (!std::exchange(links_[link].stirred, false)) continue;
    std::vector<SendLink::Bulk>& bulk = links_[link].bulk;
    for (size_t i = 0; i < std::min(bulk.size(), links_[link].in_use()); ++i) {
      // Who makes a call looks for more after it.
      if (bulk[i].hire.called())
        ++coming;
      else if (bulk[i].hire.on() && !bulk[i].blocked && !bulk[i].hire.calling())
        ready_.emplace_back(link, i);
    }
    if (shared) continue;
    const uint32_t call_bytes = CallBytes(links_[link].limit_bytes(), true);
    CallSome(coming, std::clamp<size_t>(call_bytes / session_.ChunkBytes(link, 0), 1, BulkSender::kTogetherMost));
    ready_.clear();
    coming = 0;
  }
  if (!shared) return;
  std::sort(ready_.begin(), ready_.end(), [this](const auto& a, const auto& b) { return session_.Load(a.first) < session_.Load(b.first); });
  CallSome(coming, 1);
}

void SendPeer::CallSome(size_t coming, size_t together) {
  for (const auto& [link, index] : ready_) {
    const size_t taken = coming * together;
    if (session_.ReadyChunks(link, static_cast<uint32_t>(taken) + 1) <= taken) continue;
    links_[link].bulk[index].hire.Call(io_->movers);
    ++coming;
  }
}

}  // namespace r2cc::net
