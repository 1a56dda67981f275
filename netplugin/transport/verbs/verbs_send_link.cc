#include "netplugin/transport/verbs/verbs_send_link.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/core/hash.h"
#include "netplugin/flow/mutant.h"
#include "netplugin/transport/verbs/verbs_port.h"

namespace r2cc::net::verbs {
namespace {

using plan::EvidenceCause;

// Bulk that is with the device at a time: control words wait behind it.
constexpr double kBulkOutstandingSeconds = 0.002;
// And at least so many chunks, so that the device never waits for us.
constexpr size_t kChunksLeast = 2;

}  // namespace

VerbsSendLink::VerbsSendLink(VerbsPort* port, const LinkName& name, SendOwner* owner, Counter* carried)
    : port_(port), name_(name), owner_(owner), carried_(carried), core_(port->shared(), port->key(), name, owner, this) {
  port_->Add(&core_);
}

VerbsSendLink::~VerbsSendLink() { port_->Remove(&core_); }

bool VerbsSendLink::Close() {
  port_->Remove(&core_);
  return core_.Close();
}

void VerbsSendLink::Open(const Endpoint& remote_rail, const Hello&) {
  RailAddress address;
  if (!Decode(remote_rail, &address)) return core_.Trouble(EvidenceCause::kGarbled);
  core_.Create();
}

void VerbsSendLink::Created() {
  offered_ = true;
  owner_->Offer(name_, Encode(core_.pair()->offer()));
}

void VerbsSendLink::Answered(bool accepted, const Endpoint& endpoint) {
  if (!offered_ || answered_) return;
  answered_ = true;
  verbs::Offer remote;
  if (!accepted) return core_.Trouble(EvidenceCause::kPeerFenced);
  if (!Decode(endpoint, &remote)) return core_.Trouble(EvidenceCause::kGarbled);
  core_.Join(remote);
}

void VerbsSendLink::Joined() {
  core_.OtherIsReady();
  owner_->Connected(name_);
}

// A pattern that nobody can guess from the last one goes where the other end can see it; then its sum.
void VerbsSendLink::Prove() {
  QueuePair* const pair = core_.pair();
  if (pair == nullptr) return;
  const std::span<std::byte> pattern = pair->own_proof();
  for (std::byte& byte : pattern) byte = static_cast<std::byte>(port_->shared()->random());
  const Segment segment{pattern.data(), static_cast<uint32_t>(pattern.size()), pair->local_key()};
  SendRequest request{.kind = SendKind::kWrite, .segments = std::span(&segment, 1), .remote_address = pair->remote().proof.address};
  request.remote_key = pair->remote().proof.key;
  if (pair->Write(std::span(&request, 1), 0, false) != 0) return core_.Trouble(EvidenceCause::kSocketError);
  core_.SendProof(Crc32c(pattern.data(), pattern.size()) ^ port_->key().tag);
}

void VerbsSendLink::Start() {
  started_ = true;
  owner_->Ready(name_);
}

bool VerbsSendLink::HasRoom() const {
  const QueuePair* const pair = core_.pair();
  if (!started_ || pair == nullptr || pair->credit() == 0 || pair->room() < 4) return false;
  const auto most = static_cast<uint64_t>(advice_.rate_bytes_per_s * kBulkOutstandingSeconds);
  return outstanding_.size() < kChunksLeast || outstanding_bytes_ < most;
}

SendLink::Room VerbsSendLink::Pump(int most, bool) {
  if (waiting_ && (!HasRoom() || !TailIsFree(*waiting_) || !Send(*std::exchange(waiting_, {})))) return Room::kNone;
  for (Chunk chunk; most > 0; --most) {
    if (!HasRoom() || !owner_->Pull(name_, &chunk)) return Room::kNone;
    if (!TailIsFree(chunk)) {
      waiting_ = chunk;
      return Room::kNone;
    }
    if (!Send(chunk)) return Room::kNone;
  }
  return HasRoom() ? Room::kLeft : Room::kNone;
}

bool VerbsSendLink::NeedsTail(const Chunk& chunk) const {
  const QueuePair* const pair = core_.pair();
  return pair->offer().adaptive_routing || pair->remote().adaptive_routing || chunk.bytes != chunk.message_bytes;
}

// Another message's record may still be wanted there, until that message is acknowledged.
bool VerbsSendLink::TailIsFree(const Chunk& chunk) const {
  if (!NeedsTail(chunk)) return true;
  const auto it = tails_.find(TicketOf(chunk.flow, chunk.message) % kTailSlots);
  if (it == tails_.end()) return true;
  const Chunk& last = it->second;
  return (last.flow == chunk.flow && last.message == chunk.message) || !owner_->Expects(last);
}

bool VerbsSendLink::Send(const Chunk& chunk) {
  if (owner_->Expects(chunk) && Post(chunk)) return true;
  core_.Trouble(EvidenceCause::kSocketError);
  return false;
}

bool VerbsSendLink::Post(const Chunk& chunk) {
  QueuePair* const pair = core_.pair();
  const WriteTarget target = owner_->TargetOf(name_, chunk);
  uint32_t remote_key = 0, local_key = 0;
  if (chunk.bytes > 0) {
    const auto own = chunk.memory == nullptr ? std::nullopt : port_->shared()->regions.LocalKey(chunk.memory->id, name_.local_rail);
    if (target.key == nullptr || !DecodeKey(*target.key, &remote_key) || !own) return false;
    local_key = *own;
  }
  const uint32_t ticket = TicketOf(chunk.flow, IsActive(Mutant::kTicketReused) ? chunk.message % 4 : chunk.message);
  const ChunkMark mark{ticket, chunk.index, chunk.offset() + chunk.bytes == chunk.message_bytes};
  const bool tailed = NeedsTail(chunk);
  std::array<SendRequest, 2> requests;
  const Segment data{chunk.data, chunk.bytes, local_key};
  SendRequest& write = requests[0];
  write = {.kind = SendKind::kWriteWithImmediate, .segments = std::span(&data, chunk.bytes > 0 ? 1 : 0), .remote_address = target.address};
  write.remote_key = remote_key;
  write.immediate = ImmediateOf(mark);
  size_t count = 1;
  const auto record = Encode(Tail{chunk.message_bytes, chunk.chunk_bytes}, ticket, port_->key().tag);
  const Segment tail{record.data(), kTailBytes, 0};
  if (tailed) {
    write.kind = SendKind::kWrite;
    const RemoteMemory to = pair->RemoteTail(ticket);
    requests[1] = {.kind = SendKind::kWriteWithImmediate, .inlined = true, .segments = std::span(&tail, 1), .remote_address = to.address};
    requests[1].remote_key = to.key;
    requests[1].immediate = write.immediate;
    count = 2;
  }
  if (pair->Write(std::span(requests.data(), count), 1, true) != 0) return false;
  if (tailed) tails_[ticket % kTailSlots] = chunk;
  if (outstanding_.empty()) busy_since_ = port_->shared()->clock->Now();
  outstanding_.push_back({pair->posted(), chunk.flow, chunk.bytes});
  outstanding_bytes_ += chunk.bytes;
  *carried_ += chunk.bytes;
  return true;
}

void VerbsSendLink::Retired(uint64_t through) {
  for (; !outstanding_.empty() && outstanding_.front().through <= through; outstanding_.pop_front()) {
    outstanding_bytes_ -= outstanding_.front().bytes;
    facts_.delivered_bytes += outstanding_.front().bytes;
  }
  const Nanos now = port_->shared()->clock->Now();
  if (busy_since_ != 0) facts_.busy += now - busy_since_;
  busy_since_ = outstanding_.empty() ? 0 : now;
  owner_->Ready(name_);
}

bool VerbsSendLink::Holds(FlowId flow) {
  if (waiting_ && waiting_->flow == flow) return true;
  return std::any_of(outstanding_.begin(), outstanding_.end(), [flow](const Outstanding& chunk) { return chunk.flow == flow; });
}

LinkFacts VerbsSendLink::Measure() {
  LinkFacts facts = facts_;
  if (busy_since_ != 0) facts.busy += port_->shared()->clock->Now() - busy_since_;
  return facts;
}

}  // namespace r2cc::net::verbs
