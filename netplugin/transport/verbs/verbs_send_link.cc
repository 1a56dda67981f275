#include "netplugin/transport/verbs/verbs_send_link.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/core/hash.h"
#include "netplugin/flow/mutant.h"
#include "netplugin/flow/tuning.h"
#include "netplugin/transport/verbs/verbs_port.h"

namespace r2cc::net::verbs {
namespace {

using plan::EvidenceCause;

// A chunk and its tail record.
constexpr uint32_t kRequestsPerChunk = 2;

}  // namespace

VerbsSendLink::VerbsSendLink(VerbsPort* port, const LinkName& name, SendOwner* owner, Counter* carried)
    : port_(port),
      name_(name),
      owner_(owner),
      carried_(carried),
      core_(port->shared(), port->key(), name, LinkCore::End::kSends, port->HistoryOf(LinkCore::End::kSends, name.link), owner, this) {
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

bool VerbsSendLink::HasRoom(size_t more, uint64_t more_bytes) const {
  const QueuePair* const pair = core_.pair();
  if (!started_ || pair == nullptr || pair->credit() <= more || pair->room() < tuning::kRequestsKept + more * kRequestsPerChunk)
    return false;
  const auto most = static_cast<uint64_t>(advice_.rate_bytes_per_s * tuning::kQueuedSeconds);
  return outstanding_.size() + more < tuning::kDeviceChunksLeast || outstanding_bytes_ + more_bytes < most;
}

// Of a chunk the next one is pulled first, because the last one before the link rests is signaled: when there is no room for another, as
// its end makes that room; and when chunks are dealt out to all links, as the acknowledgement of its message may come on another. Else the
// acknowledgement says as much, and saves the completion.
SendLink::Room VerbsSendLink::Pump(int most, bool) {
  Retire();
  Chunk chunk;
  const auto pull = [&](Chunk* next) { return most > 0 && owner_->Pull(name_, next) && most-- > 0; };
  if (!HasRoom()) return Room::kNone;
  // Its flow was closed, or the peer has closed it: nothing of it may be written any more.
  if (waiting_ && !owner_->MayWrite(waiting_->flow)) waiting_.reset();
  if (waiting_)
    chunk = *std::exchange(waiting_, {});
  else if (!pull(&chunk))
    return most == 0 ? Room::kLeft : Room::kNone;
  for (;;) {
    if (!TailIsFree(chunk)) {
      waiting_ = chunk;
      return Room::kNone;
    }
    Chunk next;
    const bool room = HasRoom(1, chunk.bytes);
    const bool another = room && pull(&next);
    if (!Send(chunk, !room || (!another && advice_.spread))) return Room::kNone;
    if (!another) return room && most == 0 ? Room::kLeft : Room::kNone;
    chunk = next;
  }
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

bool VerbsSendLink::Send(const Chunk& chunk, bool signaled) {
  if (owner_->Expects(chunk) && Post(chunk, signaled)) return true;
  core_.Trouble(EvidenceCause::kSocketError);
  return false;
}

bool VerbsSendLink::Post(const Chunk& chunk, bool signaled) {
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
  if (pair->Write(std::span(requests.data(), count), 1, signaled) != 0) return false;
  if (tailed) tails_[ticket % kTailSlots] = chunk;
  if (outstanding_.empty()) busy_since_ = port_->shared()->clock->Now();
  outstanding_.push_back({pair->posted(), chunk});
  outstanding_bytes_ += chunk.bytes;
  *carried_ += chunk.bytes;
  return true;
}

void VerbsSendLink::FrameReceived(const Frame& frame) {
  const bool had_room = HasRoom();
  owner_->FrameReceived(name_, frame);
  Retire();
  if (waiting_ || (!had_room && HasRoom())) owner_->Ready(name_);
}

void VerbsSendLink::Retired(uint64_t through) {
  retired_ = through;
  Retire();
  owner_->Ready(name_);
}

void VerbsSendLink::Retire() {
  const size_t before = outstanding_.size();
  for (; !outstanding_.empty(); outstanding_.pop_front()) {
    const Outstanding& front = outstanding_.front();
    // What a closed flow has left here is wanted by nobody, and may still be read.
    const bool acknowledged = owner_->IsOpen(front.chunk.flow) && !owner_->Expects(front.chunk);
    if (front.through > retired_ && !acknowledged) break;
    outstanding_bytes_ -= front.chunk.bytes;
    facts_.delivered_bytes += front.chunk.bytes;
  }
  if (outstanding_.size() == before) return;
  const Nanos now = port_->shared()->clock->Now();
  if (busy_since_ != 0) facts_.busy += now - busy_since_;
  busy_since_ = outstanding_.empty() ? 0 : now;
}

bool VerbsSendLink::AskForEnd() {
  QueuePair* const pair = core_.pair();
  // A full queue has a request whose end is told.
  if (pair->room() == 0) return true;
  SendRequest nothing{.kind = SendKind::kWrite};
  return pair->Write(std::span(&nothing, 1), 0, true) == 0;
}

bool VerbsSendLink::Release(FlowId flow) {
  // Nothing of it is read yet.
  if (waiting_ && waiting_->flow == flow) waiting_.reset();
  return started_ && core_.pair() != nullptr && AskForEnd();
}

bool VerbsSendLink::Holds(FlowId flow) {
  if (waiting_ && waiting_->flow == flow) return true;
  return std::any_of(outstanding_.begin(), outstanding_.end(), [flow](const Outstanding& one) { return one.chunk.flow == flow; });
}

// The device reports what is signaled. If a chunk that is not has been on its way since the last time, it is asked: the acknowledgement
// may be late for other reasons than this queue pair.
PathFacts VerbsSendLink::Progress() {
  const QueuePair* const pair = core_.pair();
  const uint64_t oldest = outstanding_.empty() ? 0 : outstanding_.front().through;
  if (oldest != 0 && oldest == oldest_ && !pair->awaits() && !AskForEnd()) core_.Trouble(EvidenceCause::kSocketError);
  oldest_ = oldest;
  PathFacts facts{.delivered_bytes = pair->retired(), .unacknowledged = pair->awaits()};
  // What was posted is with the device: nothing on this host holds it up.
  facts.timeouts = 1;
  if (advice_.rate_bytes_per_s > 0) {
    const double expected_s = static_cast<double>(outstanding_bytes_) / advice_.rate_bytes_per_s;
    facts.silent_most = static_cast<Nanos>(tuning::kSlowerMost * expected_s * static_cast<double>(kNanosPerSecond));
  }
  return facts;
}

LinkFacts VerbsSendLink::Measure() {
  Retire();
  LinkFacts facts = facts_;
  if (busy_since_ != 0) facts.busy += port_->shared()->clock->Now() - busy_since_;
  facts.limited = busy_since_ != 0 && !HasRoom();
  // An attempt that is not proved ends at its own limit.
  if (started_ && core_.pair() != nullptr) facts.paths.push_back(Progress());
  return facts;
}

}  // namespace r2cc::net::verbs
