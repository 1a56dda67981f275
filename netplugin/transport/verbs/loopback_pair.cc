#include "netplugin/transport/verbs/loopback_pair.h"

#include <cerrno>
#include <cstring>

namespace r2cc::net::verbs {
namespace {

// As links have: 0.94 s with the timeout. No packet leaves the device.
constexpr uint8_t kTimeout = 15, kRetryCnt = 6;
constexpr size_t kPolledMost = 16;

}  // namespace

bool LoopbackPair::Make(std::string* error) {
  Verbs* const verbs = device_->verbs();
  PortInfo port;
  GidEntry gid;
  const char* what = "look at";
  int failed = device_->LookAt(options_.port, options_.gid, &port, &gid);
  const auto step = [&](const char* name, const auto& call) {
    if (failed != 0) return;
    what = name;
    failed = call();
  };
  step("find memory for", [&] {
    page_ = std::make_unique<Page>();
    return verbs->Register(domain_->id(), page_->bytes.data(), page_->bytes.size(), kLocalWrite, &region_);
  });
  step("make a completion queue on",
       [&] { return verbs->CreateCompletionQueue(device_->context(), kRequests, CompletionChannelId{}, &queue_); });
  step("make a queue pair on", [&] { return verbs->CreateQueuePair(domain_->id(), {queue_, queue_, kRequests, 1, 1, 1, 0}, &info_); });
  step("begin a queue pair on", [&] { return verbs->Init(info_.id, options_.port, 0, kRemoteRead | kRemoteWrite); });
  step("join a queue pair to itself on", [&] {
    ReadyToReceive receive;
    receive.path = {.port = options_.port, .gid_index = gid.index, .remote_gid = gid.gid, .remote_lid = port.lid};
    receive.remote_number = info_.number;
    receive.receive_psn = options_.psn & 0xffffff;
    receive.mtu_bytes = port.mtu_bytes;
    return verbs->MakeReadyToReceive(info_.id, receive);
  });
  step("start a queue pair on", [&] {
    return verbs->MakeReadyToSend(info_.id, {.send_psn = options_.psn & 0xffffff, .timeout = kTimeout, .retry_cnt = kRetryCnt});
  });
  if (failed != 0) *error = std::string("R2CC: cannot ") + what + " the RDMA device " + device_->info().name + ": " + std::strerror(failed);
  return failed == 0;
}

LoopbackPair::~LoopbackPair() {
  Verbs* const verbs = device_->verbs();
  if (info_.id != QueuePairId{}) verbs->DestroyQueuePair(info_.id);
  if (queue_ != CompletionQueueId{}) verbs->DestroyCompletionQueue(queue_);
  if (region_.id == MemoryRegionId{}) return;
  // The device may still write it.
  if (verbs->Deregister(region_.id) != 0 && !device_->IsGone()) static_cast<void>(page_.release());
}

int LoopbackPair::Post(SendKind kind, const Segment& segment, uint64_t remote_address, uint32_t remote_key) {
  if (outstanding_ == kRequests) return ENOMEM;
  SendRequest request{.kind = kind, .signaled = true, .segments = std::span(&segment, 1), .remote_address = remote_address};
  request.remote_key = remote_key;
  size_t posted = 0;
  const int failed = device_->verbs()->PostSend(info_.id, std::span(&request, 1), &posted);
  if (failed == 0) ++outstanding_;
  return failed;
}

int LoopbackPair::Write(uint64_t to, uint32_t remote_key, const void* from, uint32_t local_key, uint32_t bytes) {
  return Post(SendKind::kWrite, {from, bytes, local_key}, to, remote_key);
}

int LoopbackPair::Flush(const void* at, uint32_t remote_key) {
  return Post(SendKind::kRead, {page_->bytes.data(), 1, region_.local_key}, reinterpret_cast<uintptr_t>(at), remote_key);
}

bool LoopbackPair::Poll(uint32_t* ended) {
  std::array<Completion, kPolledMost> completions;
  size_t taken = 0;
  *ended = 0;
  if (outstanding_ == 0) return true;
  const int failed = device_->verbs()->Poll(queue_, completions, &taken);
  for (size_t i = 0; i < taken; ++i) {
    if (completions[i].status != Status::kSuccess) return false;
    --outstanding_;
    ++*ended;
  }
  return failed == 0;
}

}  // namespace r2cc::net::verbs
