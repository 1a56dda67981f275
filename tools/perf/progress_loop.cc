#include "tools/perf/progress_loop.h"

#include <sys/prctl.h>

#include <cstdio>
#include <string>
#include <utility>

#include "tools/perf/clock.h"
#include "tools/perf/pattern.h"

namespace r2cc::perf {
namespace {

constexpr int kRoundsPerClock = 32;  // idle rounds between two looks at the clock

// Connections of a channel are few; a linear search beats a map.
template <typename FlowPointer>
FlowPointer* FindPeer(std::vector<FlowPointer>& flows, int peer) {
  for (FlowPointer& flow : flows)
    if (flow->peer() == peer) return &flow;
  return nullptr;
}

}  // namespace

Status ProgressLoop::Run(std::vector<Sequencer>* sequencers, int times, const float* input, float* output, int64_t iteration,
                         int64_t algorithm_bytes) {
  running_ = true;
  prctl(PR_SET_TIMERSLACK, 1000);  // the default of 50 us would double a short sleep
  for (size_t c = 0; c < channels_->size(); ++c)
    for (auto& flow : (*channels_)[c].receives) flow->Expect(times * (*sequencers)[c].receives(flow->peer()));
  const int64_t start = NowNs();
  Status status;
  for (int time = 0; time < times && status.ok(); ++time) {
    if (time > 0)
      for (Sequencer& sequencer : *sequencers) sequencer.Rewind();
    status = Drive(sequencers, input, output);
  }
  const int64_t end = NowNs();
  duration_ns_ = end - start;
  if (status.ok()) {
    trace_->Add("iteration", end, std::to_string(iteration), algorithm_bytes, duration_ns_);
    trace_->MaybeFlush(end);
  } else {
    for (Channel& channel : *channels_) {
      for (auto& flow : channel.sends) flow->TraceIfOpen(end);
      for (auto& flow : channel.receives) flow->TraceIfOpen(end);
    }
    trace_->Flush(end);
  }
  running_ = false;
  return status;
}

Status ProgressLoop::Drive(std::vector<Sequencer>* sequencers, const float* input, float* output) {
  int64_t progressed = NowNs();
  int idle_rounds = 0;
  while (!cancelled_.load(std::memory_order_relaxed)) {
    bool moved = false;
    bool finished = true;
    for (size_t c = 0; c < channels_->size(); ++c) {
      Channel& channel = (*channels_)[c];
      R2CC_PERF_RETURN_IF_ERROR(Step(&channel, &(*sequencers)[c], input, output, &moved));
      finished = finished && (*sequencers)[c].finished();
      for (auto& flow : channel.sends) finished = finished && flow->idle();
    }
    if (finished) return {};
    if (moved) {
      idle_rounds = 0;
      progressed = 0;
    } else {
      R2CC_PERF_RETURN_IF_ERROR(Wait(++idle_rounds, &progressed));
    }
  }
  return Status::Error("cancelled");
}

Status ProgressLoop::Step(Channel* channel, Sequencer* sequencer, const float* input, float* output, bool* moved) {
  for (auto& flow : channel->receives) R2CC_PERF_RETURN_IF_ERROR(flow->Progress(moved));
  const auto arrived = [channel](int peer) { return (*FindPeer(channel->receives, peer))->HasData(); };
  const auto room = [channel](int peer) { return (*FindPeer(channel->sends, peer))->HasRoom(); };
  // One slice, then the next channel's: on a GPU they run side by side, and NCCL's proxy goes round them a step at a time.
  if (const Op* op = sequencer->Next(arrived, room)) {
    R2CC_PERF_RETURN_IF_ERROR(Execute(channel, *op, input, output));
    *moved = true;
    // At once, so that the wire has work while the next slice is being copied.
    if (op->send_peer >= 0) R2CC_PERF_RETURN_IF_ERROR((*FindPeer(channel->sends, op->send_peer))->Progress(moved));
    if (trace_->enabled()) trace_->MaybeFlush(NowNs());
  }
  for (auto& flow : channel->sends) R2CC_PERF_RETURN_IF_ERROR(flow->Progress(moved));
  return {};
}

Status ProgressLoop::Execute(Channel* channel, const Op& op, const float* input, float* output) {
  const auto bytes = static_cast<size_t>(op.elements) * sizeof(float);
  ReceiveFlow* from = op.recv_peer >= 0 ? FindPeer(channel->receives, op.recv_peer)->get() : nullptr;
  SendFlow* to = op.send_peer >= 0 ? FindPeer(channel->sends, op.send_peer)->get() : nullptr;
  if (from != nullptr && from->DataBytes() != bytes)
    return Status::Error("a message arrived with " + std::to_string(from->DataBytes()) + " bytes where " + std::to_string(bytes) +
                         " were sent: " + from->Describe());
  Combine(from != nullptr ? from->Data() : nullptr, op.input_at >= 0 ? input + op.input_at : nullptr,
          op.output_at >= 0 ? output + op.output_at : nullptr, to != nullptr ? to->NextSlot() : nullptr, op.elements);
  if (from != nullptr) from->Consume();
  if (to != nullptr) to->Commit(bytes);
  return {};
}

// progressed_ns: when anything last moved; 0: since the last call.
Status ProgressLoop::Wait(int rounds, int64_t* progressed_ns) {
  if (rounds % kRoundsPerClock == 1) {
    const int64_t now = NowNs();
    if (*progressed_ns == 0) *progressed_ns = now;
    trace_->MaybeFlush(now);
    if (idle_.timeout_ns > 0 && now - *progressed_ns > idle_.timeout_ns) return TimedOut(now);
  }
  perf::Wait(idle_, rounds);
  return {};
}

Status ProgressLoop::TimedOut(int64_t now_ns) const {
  const Flow* oldest = nullptr;
  int waiting = 0;
  const auto consider = [&](const Flow& flow) {
    if (!flow.outstanding()) return;
    ++waiting;
    if (oldest == nullptr || flow.waits_since_ns() < oldest->waits_since_ns()) oldest = &flow;
  };
  for (const Channel& channel : *channels_) {
    for (const auto& flow : channel.sends) consider(*flow);
    for (const auto& flow : channel.receives) consider(*flow);
  }
  char seconds[32];
  snprintf(seconds, sizeof(seconds), "%.1f", static_cast<double>(idle_.timeout_ns) / 1e9);
  std::string text = std::string("nothing completed for ") + seconds + " s (--timeout)";
  if (oldest == nullptr) return Status::Error(text + ": the plugin accepts no request (isend returned no request)");
  char age[48];
  snprintf(age, sizeof(age), "%.1f s (since %.3f s)", static_cast<double>(now_ns - oldest->waits_since_ns()) / 1e9,
           static_cast<double>(oldest->waits_since_ns()) / 1e9);
  return Status::Error(text + "; longest waiting of " + std::to_string(waiting) + " flows, for " + age + ": " + oldest->Describe());
}

}  // namespace r2cc::perf
