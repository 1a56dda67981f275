#include "netplugin/transport/verbs/queue_pair.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/core/check.h"
#include "netplugin/flow/tuning.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

namespace r2cc::net::verbs {
namespace {

// The header of a control message: {kind 1, zero 3, receives posted 4}.
constexpr size_t kControlHeaderBytes = 8;
// Completions that one poll takes.
constexpr size_t kPolledMost = 32;

bool Fail(std::string* error, const char* what, const std::string& device, int failed) {
  *error = std::string("R2CC: cannot ") + what + " on the RDMA device " + device + ": " + std::strerror(failed);
  *error += LockedMemoryAdvice(failed);
  return false;
}

// The device may still write it.
void KeepForGood([[maybe_unused]] std::byte* memory) {
#ifdef __SANITIZE_ADDRESS__
  __lsan_ignore_object(memory);
#endif
}

}  // namespace

bool QueuePair::Make(std::string* error) {
  Verbs* const verbs = device_->verbs();
  const std::string& name = device_->info().name;
  // All that may complete at a time: every receive and every send once, and their flushes.
  const uint32_t entries = 2 * (kReceives + 1 + kSends);
  if (entries > device_->limits().completions) return Fail(error, "make so long a completion queue", name, EINVAL);
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kPageBytes, kMemoryBytes)));
  if (memory_ == nullptr) return Fail(error, "find memory for a link", name, ENOMEM);
  std::memset(memory_.get(), 0, kMemoryBytes);
  int failed = verbs->CreateChannel(device_->context(), &channel_, &channel_fd_);
  if (failed != 0) return Fail(error, "make a completion channel", name, failed);
  if ((failed = verbs->CreateCompletionQueue(device_->context(), entries, channel_, &queue_)) != 0)
    return Fail(error, "make a completion queue", name, failed);
  if ((failed = verbs->Register(domain_->id(), memory_.get(), kMemoryBytes, kLocalWrite | kRemoteWrite, &region_)) != 0)
    return Fail(error, "register a link's memory", name, failed);
  // Two segments are never needed: tails and frames have slots of their own. One receive is the fence's.
  const QueuePairLimits limits{queue_, queue_, kSends, kReceives + 1, 1, 1, static_cast<uint32_t>(kRecordPlaceBytes)};
  if ((failed = verbs->CreateQueuePair(domain_->id(), limits, &info_)) != 0) return Fail(error, "make a queue pair", name, failed);
  if ((failed = verbs->Init(info_.id, options_.port, options_.site.pkey_index, kRemoteWrite)) != 0)
    return Fail(error, "begin a queue pair", name, failed);
  std::vector<uint32_t> all(kReceives);
  for (uint32_t i = 0; i < kReceives; ++i) all[i] = i;
  if ((failed = PostReceives(all)) != 0) return Fail(error, "post receives", name, failed);
  announced_ = received_;
  return true;
}

bool QueuePair::Create(std::string* error) {
  const std::string& name = device_->info().name;
  PortInfo port;
  const int failed = device_->LookAt(options_.port, options_.gid, &port, &gid_);
  if (failed != 0) return Fail(error, failed == ENETUNREACH ? "find the rail's GID" : "query the port", name, failed);
  // To join it would take the device a second of asking for the peer's address.
  if (port.state != PortState::kActive) return Fail(error, "use the port", name, ENETDOWN);
  if (!Make(error)) return false;
  const auto at = [this](size_t offset) { return RemoteMemory{reinterpret_cast<uintptr_t>(memory_.get()) + offset, region_.remote_key}; };
  offer_.address = {port.link_layer, gid_.gid, port.lid};
  offer_.number = info_.number;
  offer_.psn = options_.psn & 0xffffff;
  offer_.mtu_bytes = port.mtu_bytes;
  offer_.receives = kReceives;
  offer_.adaptive_routing = options_.site.adaptive_routing;
  offer_.records = at(kRecordsAt);
  offer_.tails = at(kTailsAt);
  offer_.proof = at(kProofAt);
  return true;
}

bool QueuePair::Join(const Offer& remote, std::string* error) {
  Verbs* const verbs = device_->verbs();
  const std::string& name = device_->info().name;
  if (remote.address.link_layer != offer_.address.link_layer)
    return Fail(error, "join a link to a peer of another link layer", name, EPROTONOSUPPORT);
  remote_ = remote;
  credit_through_ = remote.receives;
  ReadyToReceive receive;
  receive.path = {.port = options_.port, .gid_index = gid_.index, .remote_gid = remote.address.gid, .remote_lid = remote.address.lid};
  receive.path.traffic_class = options_.site.traffic_class.value_or(0);
  receive.path.service_level = options_.site.service_level.value_or(0);
  receive.remote_number = remote.number;
  receive.receive_psn = remote.psn;
  receive.mtu_bytes = mtu_bytes();
  may_place_ = true;  // whatever the call says
  if (const int failed = verbs->MakeReadyToReceive(info_.id, receive); failed != 0) return Fail(error, "join a queue pair", name, failed);
  const ReadyToSend send{.send_psn = offer_.psn, .timeout = options_.site.timeout, .retry_cnt = options_.site.retry_cnt};
  if (const int failed = verbs->MakeReadyToSend(info_.id, send); failed != 0) return Fail(error, "start a queue pair", name, failed);
  return true;
}

std::unique_ptr<Fence> QueuePair::NewFence(std::function<int()> second_line) {
  fenced_ = true;
  const Fence::Target target{info_.id, queue_, WorkId(WorkKind::kFence, 0), newest_receive_, device_->reset_waits()};
  return std::make_unique<Fence>(device_->verbs(), target,
                                 Fence::Calls{.gone = [this] { return device_->IsGone(); },
                                              .answers = [this] { return device_->Answers(options_.port); },
                                              .second_line = std::move(second_line)});
}

QueuePair::~QueuePair() {
  Verbs* const verbs = device_->verbs();
  if (info_.id != QueuePairId{} && !fenced_) verbs->DestroyQueuePair(info_.id);
  if (queue_ != CompletionQueueId{}) verbs->DestroyCompletionQueue(queue_);
  if (channel_ != CompletionChannelId{}) verbs->DestroyChannel(channel_);
  if (region_.id == MemoryRegionId{}) return;
  if (verbs->Deregister(region_.id) != 0 && !device_->IsGone()) KeepForGood(memory_.release());
}

// ---- receives ----

int QueuePair::PostReceives(std::span<const uint32_t> slots) {
  std::array<Segment, kReceives> segments;
  std::array<ReceiveRequest, kReceives> requests;
  for (size_t i = 0; i < slots.size(); ++i) {
    segments[i] = {memory_.get() + kReceivesAt + size_t{slots[i]} * kFrameSlotBytes, kFrameSlotBytes, region_.local_key};
    requests[i] = {WorkId(WorkKind::kReceive, slots[i]), std::span(&segments[i], 1)};
  }
  size_t posted = 0;
  const int failed = device_->verbs()->PostReceive(info_.id, std::span(requests.data(), slots.size()), &posted);
  received_ += static_cast<uint32_t>(posted);
  if (posted > 0) newest_receive_ = requests[posted - 1].wr_id;
  return failed;
}

int QueuePair::Reuse(uint32_t slot) {
  to_post_.push_back(slot);
  if (to_post_.size() < tuning::kReceivesTogether) return 0;
  const int failed = PostReceives(to_post_);
  to_post_.clear();
  return failed;
}

// ---- sends ----

int QueuePair::SendControl(uint8_t kind, std::span<const uint8_t> bytes) {
  R2CC_CHECK(bytes.size() + kControlHeaderBytes <= kFrameSlotBytes);
  const uint32_t slot = next_slot_++ % kFrameSlots;
  std::byte* const at = memory_.get() + kFramesAt + size_t{slot} * kFrameSlotBytes;
  std::memset(at, 0, kControlHeaderBytes);
  at[0] = std::byte{kind};
  const uint32_t receives = AnnounceReceives();
  std::memcpy(at + 4, &receives, sizeof(receives));
  if (!bytes.empty()) std::memcpy(at + kControlHeaderBytes, bytes.data(), bytes.size());
  const Segment segment{at, static_cast<uint32_t>(kControlHeaderBytes + bytes.size()), region_.local_key};
  SendRequest request{.kind = SendKind::kSend, .segments = std::span(&segment, 1)};
  // Control messages are rare, and their slots few.
  const int failed = Write(std::span(&request, 1), 1, true);
  if (failed != 0) return failed;
  ++controls_out_;
  controls_.push_back(posted_);
  return 0;
}

int QueuePair::Write(std::span<SendRequest> requests, uint32_t uses, bool signaled) {
  for (size_t i = 0; i < requests.size(); ++i) requests[i].wr_id = WorkId(WorkKind::kSend, NameOf(posted_ + i + 1));
  unsignaled_ += requests.size();
  requests.back().signaled = signaled || unsignaled_ >= tuning::kSignalEvery;
  size_t posted = 0;
  const int failed = device_->verbs()->PostSend(info_.id, requests, &posted);
  posted_ += posted;
  used_ += uses;
  if (failed != 0 || !requests.back().signaled) return failed;
  unsignaled_ = 0;
  signaled_.push_back(posted_);
  return 0;
}

// ---- completions ----

int QueuePair::Arm() {
  device_->verbs()->TakeCompletionEvents(channel_);
  return device_->verbs()->Arm(queue_, false);
}

bool QueuePair::Poll(const std::function<bool(const Event&)>& report) {
  std::array<Completion, kPolledMost> completions;
  for (size_t taken = kPolledMost; taken == kPolledMost;) {
    const int failed = device_->verbs()->Poll(queue_, completions, &taken);
    for (size_t i = 0; i < taken; ++i)
      if (!Handle(completions[i], report)) return true;
    if (failed != 0) return false;
  }
  return true;
}

bool QueuePair::Handle(const Completion& completion, const std::function<bool(const Event&)>& report) {
  // Of an earlier queue pair that had this number: it is ignored.
  if (completion.wr_id >> 32 != options_.number) return true;
  const auto index = static_cast<uint32_t>(completion.wr_id & 0xffffff);
  const auto kind = static_cast<WorkKind>(completion.wr_id >> 24 & 0xff);
  if (completion.status != Status::kSuccess)
    return report({.kind = Event::Kind::kFailed, .status = completion.status, .vendor_error = completion.vendor_error});
  if (kind != WorkKind::kReceive) {
    // By its name: a completion that the device has lost, or reports twice, must not move those of others.
    const auto named = std::find_if(signaled_.begin(), signaled_.end(), [index](uint64_t sequence) { return NameOf(sequence) == index; });
    if (named == signaled_.end()) return true;
    retired_ = *named;
    signaled_.erase(signaled_.begin(), named + 1);
    for (; !controls_.empty() && controls_.front() <= retired_; controls_.pop_front()) --controls_out_;
    return report({.kind = Event::Kind::kRetired, .through = retired_});
  }
  if (index >= kReceives) return true;
  const auto* const bytes = reinterpret_cast<const uint8_t*>(memory_.get() + kReceivesAt + size_t{index} * kFrameSlotBytes);
  bool more = true;
  if (completion.kind == CompletionKind::kReceiveWriteWithImmediate) {
    more = report({.kind = Event::Kind::kMark, .immediate = completion.immediate, .immediate_bytes = completion.bytes});
  } else if (completion.bytes >= kControlHeaderBytes && completion.bytes <= kFrameSlotBytes) {
    uint32_t receives = 0;
    std::memcpy(&receives, bytes + 4, sizeof(receives));
    Credit(receives);
    more = report({.kind = Event::Kind::kControl,
                   .control_kind = bytes[0],
                   .bytes = {bytes + kControlHeaderBytes, completion.bytes - kControlHeaderBytes}});
  }
  if (!more) return false;
  if (const int failed = Reuse(index); failed != 0) return report({.kind = Event::Kind::kFailed, .status = Status::kFatal});
  return true;
}

std::span<const std::byte, kRecordPlaceBytes> QueuePair::RecordAt(uint32_t place) const {
  return std::span<const std::byte, kRecordPlaceBytes>(memory_.get() + kRecordsAt + place * kRecordPlaceBytes, kRecordPlaceBytes);
}

RemoteMemory QueuePair::RemoteRecord(uint32_t place) const {
  return {remote_.records.address + place * kRecordPlaceBytes, remote_.records.key};
}

std::span<const std::byte, kTailBytes> QueuePair::TailOf(uint32_t ticket) const {
  return std::span<const std::byte, kTailBytes>(memory_.get() + kTailsAt + size_t{ticket % kTailSlots} * kTailBytes, kTailBytes);
}

RemoteMemory QueuePair::RemoteTail(uint32_t ticket) const {
  return {remote_.tails.address + uint64_t{ticket % kTailSlots} * kTailBytes, remote_.tails.key};
}

}  // namespace r2cc::net::verbs
