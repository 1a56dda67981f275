#include "tests/rigs/one_guest/verbs_end.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

namespace r2cc::rig {
namespace {

using verbs::Completion;
using verbs::GidEntry;

constexpr uint32_t kPsnMask = 0xffffff;  // a packet number has 24 bits

void Must(int error, const char* what) {
  if (error == 0) return;
  std::fprintf(stderr, "%s: %s\n", what, std::strerror(error));
  std::exit(1);
}

}  // namespace

GidEntry AddressOf(verbs::Verbs* verbs, verbs::ContextId context) {
  constexpr std::array<uint8_t, 12> kMappedV4 = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  std::vector<GidEntry> entries;
  Must(verbs->QueryGids(context, 1, &entries), "GID table");
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const GidEntry& entry) {
    return entry.type == verbs::GidType::kRoceV2 && std::equal(kMappedV4.begin(), kMappedV4.end(), entry.gid.begin());
  });
  Must(found == entries.end() ? EADDRNOTAVAIL : 0, "GID of an IPv4 address");
  return *found;
}

VerbsEnd::VerbsEnd(verbs::Verbs* verbs, const std::string& device, size_t bytes) : verbs_(verbs), memory_(bytes) {
  Must(verbs_->Open(device, &context_, &async_fd_), device.c_str());
  Must(verbs_->AllocateDomain(context_, &domain_), "protection domain");
  Must(verbs_->Register(domain_, memory_.data(), memory_.size(), verbs::kLocalWrite | verbs::kRemoteWrite, &region_), "memory");
  Must(verbs_->CreateChannel(context_, &channel_, &channel_fd_), "completion channel");
}

VerbsEnd::~VerbsEnd() {
  DestroyPair();
  Must(verbs_->DestroyChannel(channel_), "end of the completion channel");
  Must(verbs_->Deregister(region_.id), "end of memory");
  Must(verbs_->FreeDomain(domain_), "end of the protection domain");
  Must(verbs_->Close(context_), "end of the device");
}

void VerbsEnd::MakePair() {
  DestroyPair();
  for (verbs::CompletionQueueId* queue : {&sends_, &receives_})
    Must(verbs_->CreateCompletionQueue(context_, 2 * kRequestsMax, channel_, queue), "completion queue");
  Must(
      verbs_->CreateQueuePair(
          domain_, {.send_completions = sends_, .receive_completions = receives_, .sends = kRequestsMax, .receives = kRequestsMax}, &pair_),
      "queue pair");
  Must(verbs_->Init(pair_.id, 1, 0, verbs::kRemoteWrite), "INIT");
  psn_ = std::random_device()() & kPsnMask;
  receives_posted_ = 0;
}

void VerbsEnd::Connect(VerbsEnd* one, VerbsEnd* other, const PairOptions& options) {
  one->MakePair();
  other->MakePair();
  for (const auto& [own, peer] : {std::pair(one, other), std::pair(other, one)}) {
    own->peer_ = peer;
    Must(own->verbs_->MakeReadyToReceive(own->pair_.id, {.path = {.gid_index = AddressOf(own->verbs_, own->context_).index,
                                                                  .remote_gid = AddressOf(peer->verbs_, peer->context_).gid},
                                                         .remote_number = peer->pair_.number,
                                                         .receive_psn = peer->psn_,
                                                         .mtu_bytes = options.mtu_bytes}),
         "RTR");
    Must(own->verbs_->MakeReadyToSend(own->pair_.id, {.send_psn = own->psn_, .timeout = options.timeout, .retry_cnt = options.retry_cnt}),
         "RTS");
  }
}

void VerbsEnd::DestroyPair() {
  if (pair_.id == verbs::QueuePairId{}) return;
  Must(verbs_->DestroyQueuePair(pair_.id), "end of the queue pair");
  PairIsDestroyed();
}

void VerbsEnd::PairIsDestroyed() {
  for (const verbs::CompletionQueueId queue : {sends_, receives_}) Must(verbs_->DestroyCompletionQueue(queue), "end of a completion queue");
  pair_ = {};
}

void VerbsEnd::PostReceive() {
  const verbs::ReceiveRequest request{.wr_id = ++receives_posted_};
  size_t posted = 0;
  Must(verbs_->PostReceive(pair_.id, {&request, 1}, &posted), "receive");
}

int VerbsEnd::Write(uint32_t bytes, bool with_immediate, uint32_t key_error) {
  const verbs::Segment segment{.address = memory_.data(), .bytes = bytes, .local_key = region_.local_key};
  const verbs::SendRequest request{.kind = with_immediate ? verbs::SendKind::kWriteWithImmediate : verbs::SendKind::kWrite,
                                   .signaled = true,
                                   .segments = {&segment, 1},
                                   .remote_address = reinterpret_cast<uintptr_t>(peer_->memory_.data()),
                                   .remote_key = peer_->region_.remote_key ^ key_error,
                                   .immediate = bytes};
  size_t posted = 0;
  return verbs_->PostSend(pair_.id, {&request, 1}, &posted);
}

void VerbsEnd::Arm() {
  for (const verbs::CompletionQueueId queue : {sends_, receives_}) Must(verbs_->Arm(queue, false), "arm");
}

void VerbsEnd::WaitForCompletion(int timeout_ms) {
  pollfd readable{.fd = channel_fd_, .events = POLLIN, .revents = 0};
  if (poll(&readable, 1, timeout_ms) == 1) Must(verbs_->TakeCompletionEvents(channel_), "completion event");
}

std::vector<Completion> VerbsEnd::Poll(verbs::CompletionQueueId queue) {
  std::vector<Completion> completions(kRequestsMax);
  size_t taken = 0;
  Must(verbs_->Poll(queue, completions, &taken), "poll");
  completions.resize(taken);
  return completions;
}

}  // namespace r2cc::rig
