#include "tools/perf/ring_runner.h"

#include <memory>
#include <utility>

namespace r2cc::perf {

RingRunner::RingRunner(Net* net, Trace* trace, const Options& options, const Idle& idle, int rank, int channels, int devices)
    : collective_(options.collective),
      rank_(rank),
      ranks_(options.ranks),
      setup_(net, &channels_, devices, rank, options.ranks),
      loop_(&channels_, trace, idle) {
  for (int c = 0; c < channels; ++c) {
    Channel channel;
    for (const int peer : SendPeers(collective_, rank_, ranks_))
      channel.sends.push_back(std::make_unique<SendFlow>(net, trace, options.slot_checks, rank_, c, peer));
    for (const int peer : RecvPeers(collective_, rank_, ranks_))
      channel.receives.push_back(std::make_unique<ReceiveFlow>(net, trace, options.slot_checks, rank_, c, peer));
    channels_.push_back(std::move(channel));
  }
}

Status RingRunner::Run(const Work& work) {
  sequencers_.clear();
  const int channels = static_cast<int>(channels_.size());
  for (int c = 0; c < channels; ++c) sequencers_.emplace_back(BuildProgram(collective_, {rank_, ranks_, c, channels}, work.count), ranks_);
  return loop_.Run(&sequencers_, work.times, work.input, work.output, work.iteration, work.elements * static_cast<int64_t>(sizeof(float)));
}

void RingRunner::CheckAllSlots() {
  for (Channel& channel : channels_)
    for (auto& flow : channel.receives) flow->CheckAllSlots();
}

int64_t RingRunner::late_writes() const {
  int64_t late_writes = 0;
  for (const Channel& channel : channels_)
    for (const auto& flow : channel.receives) late_writes += flow->late_writes();
  return late_writes;
}

void RingRunner::TraceOpen(int64_t now_ns) {
  for (Channel& channel : channels_) {
    for (auto& flow : channel.receives) flow->TraceIfOpen(now_ns);
    for (auto& flow : channel.sends) flow->TraceIfOpen(now_ns);
  }
}

}  // namespace r2cc::perf
