#include "netplugin/transport/collective/device_reducer.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "netplugin/collnet/reduce.h"

namespace r2cc::net {
namespace {

using Reduction = collnet::Reducer::Reduction;

class OnStream final : public Reduction {
 public:
  OnStream(gpu::ReductionStream* stream, gpu::ReductionStream::Number number) : stream_(stream), number_(number) {}
  bool done() const override {
    if (state_ == State::kRunning) state_ = stream_->Look(number_, &line_);
    return state_ != State::kRunning;
  }
  void Wait() override {
    while (!done()) std::this_thread::yield();
  }
  std::string error() const override { return state_ == State::kFailed ? line_ : ""; }

 private:
  using State = gpu::ReductionStream::State;

  gpu::ReductionStream* const stream_;
  const gpu::ReductionStream::Number number_;
  mutable State state_ = State::kRunning;
  mutable std::string line_;
};

struct Ended final : Reduction {
  explicit Ended(std::string line) : line(std::move(line)) {}
  bool done() const override { return true; }
  void Wait() override {}
  std::string error() const override { return line; }
  const std::string line;
};

}  // namespace

std::unique_ptr<Reduction> DeviceReducer::Begin(abi::DataType type, abi::RedOp op, const std::vector<Buffer>& sources, Buffer out,
                                                size_t count) {
  const auto is_device = [](const Buffer& buffer) { return buffer.is_device(); };
  if (!out.is_device() && std::none_of(sources.begin(), sources.end(), is_device)) return host_->Begin(type, op, sources, out, count);
  gpu::ReductionStream* const stream = stream_.load(std::memory_order_acquire);
  const auto is_ours = [this](const Buffer& buffer) { return buffer.is_device() && buffer.memory->gpu == number_; };
  if (stream == nullptr || sources.size() > gpu::ReductionStream::kSourcesMax || !is_ours(out) ||
      !std::all_of(sources.begin(), sources.end(), is_ours))
    return std::make_unique<Ended>(AddUpThroughHost(type, op, sources, out, count));
  std::vector<const std::byte*> from;
  for (const Buffer& source : sources) from.push_back(source.data);
  std::string error;
  const gpu::ReductionStream::Number number = stream->Begin({type, op, from, out.data, count}, &error);
  if (number == 0) return std::make_unique<Ended>(std::move(error));
  return std::make_unique<OnStream>(stream, number);
}

std::string DeviceReducer::AddUpThroughHost(abi::DataType type, abi::RedOp op, const std::vector<Buffer>& sources, Buffer out,
                                            size_t count) {
  const size_t bytes = count * collnet::ElementBytes(type);
  std::string error;
  std::vector<std::vector<std::byte>> copies;
  std::vector<const std::byte*> from;
  for (const Buffer& source : sources) {
    from.push_back(source.data);
    if (!source.is_device()) continue;
    from.back() = copies.emplace_back(bytes).data();
    if (!gpu_->Copy(source.memory->gpu, copies.back().data(), source.data, bytes, &error)) return error;
  }
  std::vector<std::byte> sum(out.is_device() ? bytes : 0);
  collnet::Reduce(type, op, from, out.is_device() ? sum.data() : out.data, count);
  if (out.is_device() && !gpu_->Copy(out.memory->gpu, out.data, sum.data(), bytes, &error)) return error;
  return "";
}

}  // namespace r2cc::net
