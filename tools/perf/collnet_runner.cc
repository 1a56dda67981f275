#include "tools/perf/collnet_runner.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tools/perf/clock.h"
#include "tools/perf/pattern.h"
#include "tools/perf/random_values.h"

namespace r2cc::perf {
namespace {

using abi::Result;

constexpr size_t kPageBytes = 4096;

}  // namespace

CollNetRunner::CollNetRunner(CollNet* net, Trace* trace, const Options& options, const Idle& idle, int rank)
    : net_(net),
      trace_(trace),
      idle_(idle),
      slot_checks_(options.slot_checks),
      type_(options.type),
      rank_(rank),
      name_("r" + std::to_string(rank) + ".collnet"),
      memory_(static_cast<uint8_t*>(std::aligned_alloc(kPageBytes, 2 * kSlots * kSlotBytes))) {
  if (memory_ != nullptr) std::memset(memory_, 0, 2 * kSlots * kSlotBytes);
}

CollNetRunner::~CollNetRunner() { std::free(memory_); }

Status CollNetRunner::Failed(const char* call, Result result) const {
  return Status::Error(std::string(call) + " returned " + abi::ResultName(result) + " (" + std::to_string(static_cast<int>(result)) +
                       "): CollNet, operation " + std::to_string(completed_) + ", " + std::to_string(posted_ - completed_) +
                       " outstanding");
}

Status CollNetRunner::Listen(std::string* handles) {
  if (memory_ == nullptr) return Status::Error("no memory for the slots of CollNet");
  bool supported = false;
  if (const Result result = net_->ReduceSupport(type_, &supported); result != Result::kSuccess) return Failed("reduceSupport", result);
  if (!supported) return Status::Error(std::string("the plugin's CollNet table adds up no ") + TypeName(type_));
  if (const Result result = net_->Listen(0, handle_.data(), &listen_comm_); result != Result::kSuccess) return Failed("listen", result);
  handles->assign(handle_.data(), handle_.size());
  return {};
}

Status CollNetRunner::Connect(const std::vector<std::string>& all_handles, int64_t) {
  std::vector<Handle> theirs(all_handles.size());
  std::vector<void*> pointers;
  for (size_t i = 0; i < theirs.size(); ++i) {
    std::memcpy(theirs[i].data(), all_handles[i].data(), std::min(all_handles[i].size(), theirs[i].size()));
    pointers.push_back(theirs[i].data());
  }
  if (const Result result = net_->Connect(&pointers, rank_, listen_comm_, &comm_); result != Result::kSuccess)
    return Failed("connect", result);
  if (const Result result = net_->CloseListen(listen_comm_); result != Result::kSuccess) return Failed("closeListen", result);
  const Result result = net_->RegisterMemory(comm_, memory_, 2 * kSlots * kSlotBytes, &mhandle_);
  return result == Result::kSuccess ? Status() : Failed("regMr", result);
}

Status CollNetRunner::Close() {
  if (const Result result = net_->DeregisterMemory(comm_, mhandle_); result != Result::kSuccess) return Failed("deregMr", result);
  if (const Result result = net_->CloseColl(comm_); result != Result::kSuccess) return Failed("closeColl", result);
  const Result result = net_->Finalize();
  return result == Result::kSuccess ? Status() : Failed("finalize", result);
}

Status CollNetRunner::Run(const Work& work) {
  running_ = true;
  const int64_t start = NowNs();
  Status status;
  for (int time = 0; time < work.times && status.ok(); ++time) status = Drive(work);
  const int64_t end = NowNs();
  duration_ns_ = end - start;
  if (status.ok()) {
    trace_->Add("iteration", end, std::to_string(work.iteration), work.elements * static_cast<int64_t>(sizeof(float)), duration_ns_);
    trace_->MaybeFlush(end);
  } else {
    TraceOpen(end);
    trace_->Flush(end);
  }
  running_ = false;
  return status;
}

// A vector without elements is one operation without any.
Status CollNetRunner::Drive(const Work& work) {
  const auto* const input = reinterpret_cast<const uint8_t*>(work.input);
  auto* const output = reinterpret_cast<uint8_t*>(work.output);
  const size_t bytes = static_cast<size_t>(work.elements) * sizeof(float);
  const int64_t operations = std::max<int64_t>(1, static_cast<int64_t>((bytes + kSlotBytes - 1) / kSlotBytes));
  const int64_t first = posted_;
  const auto begin_of = [&](int64_t operation) { return static_cast<size_t>(operation - first) * kSlotBytes; };
  const auto bytes_of = [&](int64_t operation) { return std::min(kSlotBytes, bytes - begin_of(operation)); };
  int64_t progressed = NowNs();
  for (int idle_rounds = 0; completed_ - first < operations;) {
    if (cancelled_.load(std::memory_order_relaxed)) return Status::Error("cancelled");
    bool moved = false, done = false;
    if (posted_ - first < operations && posted_ - completed_ < kSlots)
      R2CC_PERF_RETURN_IF_ERROR(Post(input + begin_of(posted_), bytes_of(posted_), &moved));
    if (posted_ > completed_) R2CC_PERF_RETURN_IF_ERROR(TakeDone(output + begin_of(completed_), bytes_of(completed_), &done));
    if (moved || done) {
      idle_rounds = 0;
      progressed = NowNs();
      trace_->MaybeFlush(progressed);
    } else {
      R2CC_PERF_RETURN_IF_ERROR(Wait(++idle_rounds, progressed));
    }
  }
  return {};
}

Status CollNetRunner::Post(const uint8_t* input, size_t bytes, bool* posted) {
  CheckSlot(posted_);
  // A vector of nothing may have no address.
  if (bytes > 0) std::memcpy(From(posted_), input, bytes);
  void* request = nullptr;
  const Result result = net_->AllReduce(comm_, From(posted_), To(posted_), bytes / BytesOf(type_), type_, mhandle_, mhandle_, &request);
  if (result != Result::kSuccess) return Failed("iallreduce", result);
  if (request == nullptr) return {};
  if (posted_ == completed_) waits_since_ns_ = NowNs();
  guarded_[posted_ % kSlots] = 0;
  requests_[posted_++ % kSlots] = request;
  *posted = true;
  return {};
}

Status CollNetRunner::TakeDone(uint8_t* output, size_t bytes, bool* done) {
  const Result result = net_->Test(requests_[completed_ % kSlots], done);
  if (result != Result::kSuccess) return Failed("test", result);
  if (!*done) return {};
  const int64_t now = NowNs();
  trace_->Add("recv", now, name_, static_cast<int64_t>(bytes), now - waits_since_ns_);
  waits_since_ns_ = now;
  if (bytes > 0) std::memcpy(output, To(completed_), bytes);
  if (slot_checks_) {
    FillGuard(From(completed_), bytes);
    FillGuard(To(completed_), bytes);
    guarded_[completed_ % kSlots] = bytes;
  }
  ++completed_;
  return {};
}

void CollNetRunner::CheckSlot(int64_t operation) {
  size_t& guarded = guarded_[operation % kSlots];
  if (guarded > 0 && !GuardIntact(To(operation), guarded)) ++late_writes_;
  guarded = 0;
}

void CollNetRunner::CheckAllSlots() {
  for (int64_t operation = posted_; operation < posted_ + kSlots; ++operation) CheckSlot(operation);
}

void CollNetRunner::TraceOpen(int64_t now_ns) {
  if (posted_ > completed_) trace_->Add("open", now_ns, name_, 0, now_ns - waits_since_ns_);
}

Status CollNetRunner::Wait(int rounds, int64_t progressed_ns) const {
  if (idle_.timeout_ns > 0 && NowNs() - progressed_ns > idle_.timeout_ns) {
    char seconds[32];
    snprintf(seconds, sizeof(seconds), "%.1f", static_cast<double>(idle_.timeout_ns) / 1e9);
    return Status::Error(std::string("nothing completed for ") + seconds + " s (--timeout); CollNet has " +
                         std::to_string(posted_ - completed_) + " operations outstanding");
  }
  perf::Wait(idle_, rounds);
  return {};
}

}  // namespace r2cc::perf
