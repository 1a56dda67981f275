// Reductions of a FakeGpu's memory, as the GPU sees it: each runs when somebody looks, after those that were begun before it.
#ifndef R2CC_NETPLUGIN_TRANSPORT_COLLECTIVE_FAKE_REDUCTION_STREAM_H_
#define R2CC_NETPLUGIN_TRANSPORT_COLLECTIVE_FAKE_REDUCTION_STREAM_H_

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "netplugin/collnet/reduce.h"
#include "netplugin/gpu/fake_gpu.h"
#include "netplugin/gpu/reduction_stream.h"

namespace r2cc::net {

// One thread.
class FakeReductionStream final : public gpu::ReductionStream {
 public:
  explicit FakeReductionStream(gpu::FakeGpu* gpu) : gpu_(gpu) {}

  Number Begin(const Work& work, std::string* error) override {
    *error = kBroken;
    if (broken) return 0;
    waiting_.push_back({work, {work.sources.begin(), work.sources.end()}});
    return done_ + waiting_.size();
  }
  State Look(Number number, std::string* error) override {
    if (number <= done_) return State::kDone;
    *error = kBroken;
    if (broken) return State::kFailed;
    Run(waiting_.front());
    waiting_.pop_front();
    return ++done_ >= number ? State::kDone : State::kRunning;
  }

  static constexpr char kBroken[] = "R2CC: cannot add up memory of GPU 0: it is broken";
  bool broken = false;
  Number done() const { return done_; }

 private:
  struct Waiting {
    Work work;
    std::vector<const std::byte*> sources;
  };
  void Run(const Waiting& waiting) {
    const Work& work = waiting.work;
    const size_t bytes = work.count * collnet::ElementBytes(work.type);
    std::string error;
    std::vector<std::vector<std::byte>> seen;
    std::vector<const std::byte*> from;
    for (const std::byte* const source : waiting.sources) {
      from.push_back(seen.emplace_back(bytes).data());
      gpu_->Copy(0, seen.back().data(), source, bytes, &error);
    }
    std::vector<std::byte> sum(bytes);
    collnet::Reduce(work.type, work.op, from, sum.data(), work.count);
    gpu_->Copy(0, work.out, sum.data(), bytes, &error);
  }

  gpu::FakeGpu* const gpu_;
  std::deque<Waiting> waiting_;
  Number done_ = 0;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_COLLECTIVE_FAKE_REDUCTION_STREAM_H_
