#include "tools/perf/flow.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tools/perf/clock.h"
#include "tools/perf/pattern.h"

namespace r2cc::perf {
namespace {

using abi::Result;

uint8_t* MapMemory() {
  void* memory = mmap(nullptr, Flow::kMemoryBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    fprintf(stderr, "r2cc-perf: no memory for the slots of a connection (%zu bytes)\n", Flow::kMemoryBytes);
    exit(1);
  }
  return static_cast<uint8_t*>(memory);
}

std::string FlowName(int rank, int channel, int peer, bool sends) {
  return "r" + std::to_string(rank) + ".c" + std::to_string(channel) + (sends ? ".send.r" : ".recv.r") + std::to_string(peer);
}

}  // namespace

Flow::Flow(Net* net, Trace* trace, bool slot_checks, int rank, int channel, int peer, bool sends)
    : net_(net),
      trace_(trace),
      slot_checks_(slot_checks),
      sends_(sends),
      channel_(channel),
      peer_(peer),
      name_(FlowName(rank, channel, peer, sends)),
      memory_(MapMemory()) {
  FillGuard(memory_, kMemoryBytes);
}

Flow::~Flow() { munmap(memory_, kMemoryBytes); }

std::string Flow::Describe() const {
  return std::string(sends_ ? "send to" : "receive from") + " rank " + std::to_string(peer_) + " on channel " + std::to_string(channel_) +
         " (message " + std::to_string(completed_) + ", " + std::to_string(posted_ - completed_) + " requests outstanding)";
}

void Flow::TraceIfOpen(int64_t now_ns) {
  if (outstanding()) trace_->Add("open", now_ns, name_, 0, now_ns - waits_since_ns_);
}

void Flow::NotePosted() {
  if (posted_++ == completed_) waits_since_ns_ = NowNs();
}

void Flow::NoteCompleted(int64_t bytes) {
  const int64_t now = NowNs();
  trace_->Add(sends_ ? "send" : "recv", now, name_, bytes, now - waits_since_ns_);
  waits_since_ns_ = now;
  ++completed_;
}

Status Flow::CallFailed(const char* call, Result result) const {
  return Status::Error(std::string(call) + " returned " + abi::ResultName(result) + " (" + std::to_string(static_cast<int>(result)) +
                       "): " + Describe());
}

SendFlow::SendFlow(Net* net, Trace* trace, bool slot_checks, int rank, int channel, int peer)
    : Flow(net, trace, slot_checks, rank, channel, peer, true), tag_(rank) {}

Status SendFlow::Progress(bool* moved) {
  while (posted_ < filled_ && posted_ - completed_ < kInFlightMax) {
    void* request = nullptr;
    const Result result = net_->Send(comm, Slot(posted_), sizes_[posted_ % kSlots], tag_, mhandle, &request);
    if (result != Result::kSuccess) return CallFailed("isend", result);
    if (request == nullptr) break;  // the plugin would block: ask again
    requests_[posted_ % kSlots] = request;
    NotePosted();
    *moved = true;
  }
  while (outstanding()) {
    bool done = false;
    std::array<int, abi::kNetRequestsMax> sizes{};
    const Result result = net_->Test(requests_[completed_ % kSlots], &done, sizes.data());
    if (result != Result::kSuccess) return CallFailed("test", result);
    if (!done) break;
    const size_t bytes = sizes_[completed_ % kSlots];
    if (slot_checks_) FillGuard(Slot(completed_), bytes);
    NoteCompleted(static_cast<int64_t>(bytes));
    *moved = true;
  }
  return {};
}

ReceiveFlow::ReceiveFlow(Net* net, Trace* trace, bool slot_checks, int rank, int channel, int peer)
    : Flow(net, trace, slot_checks, rank, channel, peer, false) {}

Status ReceiveFlow::Progress(bool* moved) {
  while (posted_ < expected_ && posted_ - completed_ < kInFlightMax && posted_ - consumed_ < kSlots) {
    CheckSlot(posted_, guarded_[posted_ % kSlots]);
    void* request = nullptr;
    const Result result = net_->Receive(comm, Slot(posted_), kFlowSlotBytes, peer(), mhandle, &request);
    if (result != Result::kSuccess) return CallFailed("irecv", result);
    if (request == nullptr) break;
    requests_[posted_ % kSlots] = request;
    NotePosted();
    *moved = true;
  }
  while (outstanding()) {
    bool done = false;
    std::array<int, abi::kNetRequestsMax> sizes{};
    const Result result = net_->Test(requests_[completed_ % kSlots], &done, sizes.data());
    if (result != Result::kSuccess) return CallFailed("test", result);
    if (!done) break;
    if (sizes[0] < 0 || static_cast<size_t>(sizes[0]) > kFlowSlotBytes)
      return Status::Error("test reported " + std::to_string(sizes[0]) + " bytes for a buffer of " + std::to_string(kFlowSlotBytes) + ": " +
                           Describe());
    sizes_[completed_ % kSlots] = static_cast<size_t>(sizes[0]);
    NoteCompleted(sizes[0]);
    *moved = true;
  }
  return {};
}

void ReceiveFlow::Consume() {
  const auto slot = static_cast<size_t>(consumed_ % kSlots);
  if (slot_checks_) FillGuard(Slot(consumed_), sizes_[slot]);
  guarded_[slot] = std::max(guarded_[slot], sizes_[slot]);
  ++consumed_;
}

void ReceiveFlow::CheckSlot(int64_t message, size_t bytes) {
  if (!slot_checks_ || GuardIntact(Slot(message), bytes)) return;
  ++late_writes_;
  FillGuard(Slot(message), kFlowSlotBytes);
}

void ReceiveFlow::CheckAllSlots() {
  for (int64_t message = posted_; message < consumed_ + kSlots; ++message) {
    CheckSlot(message, kFlowSlotBytes);
    guarded_[message % kSlots] = 0;
  }
}

}  // namespace r2cc::perf
