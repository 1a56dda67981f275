#include "netplugin/transport/collective/device_reducer.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "netplugin/gpu/fake_gpu.h"
#include "netplugin/transport/collective/fake_reduction_stream.h"

namespace r2cc::net {
namespace {

using abi::DataType;
using abi::RedOp;

constexpr size_t kCount = 1000, kBytes = kCount * sizeof(float);

class DeviceReducerTest : public testing::Test {
 protected:
  Buffer Host(float value) { return Buffer(vectors_.emplace_back(std::make_unique<std::vector<float>>(kCount, value))->data()); }
  Buffer OnGpu(float value, int gpu = 0) {
    const Buffer host = Host(value);
    std::byte* const at = gpu_.Allocate(gpu, kBytes, &error_);
    EXPECT_TRUE(gpu_.Copy(gpu, at, host.data, kBytes, &error_));
    memory_.push_back(std::make_unique<Memory>(Memory{.id = 1, .kind = MemoryKind::kCuda, .base = at, .bytes = kBytes, .gpu = gpu}));
    return {at, memory_.back().get()};
  }
  std::vector<float> Seen(const Buffer& buffer) {
    std::vector<float> seen(kCount);
    EXPECT_TRUE(gpu_.Copy(0, seen.data(), buffer.data, kBytes, &error_));
    return seen;
  }
  // How often the stream was looked at until the sum was there.
  int Add(const std::vector<Buffer>& sources, const Buffer& out, float want) {
    const auto reduction = reducer_.Begin(DataType::kFloat32, RedOp::kSum, sources, out, kCount);
    const gpu::ReductionStream::Number before = stream_.done();
    reduction->Wait();
    EXPECT_EQ(reduction->error(), "");
    EXPECT_EQ(Seen(out), std::vector<float>(kCount, want));
    return static_cast<int>(stream_.done() - before);
  }

  gpu::FakeGpu gpu_{2};
  FakeReductionStream stream_{&gpu_};
  collnet::CallersReducer host_;
  DeviceReducer reducer_{&host_, &gpu_};
  std::vector<std::unique_ptr<std::vector<float>>> vectors_;
  std::vector<std::unique_ptr<Memory>> memory_;
  std::string error_;
};

TEST_F(DeviceReducerTest, MemoryOfTheGpuIsAddedUpByItsStream) {
  reducer_.SetStream(0, &stream_);
  EXPECT_EQ(Add({OnGpu(1), OnGpu(2), OnGpu(4)}, OnGpu(0), 7), 1);
  const Buffer in_place = OnGpu(3);
  EXPECT_EQ(Add({in_place, OnGpu(2)}, in_place, 5), 1);
}

TEST_F(DeviceReducerTest, HostMemoryIsNot) {
  reducer_.SetStream(0, &stream_);
  EXPECT_EQ(Add({Host(1), Host(2)}, Host(0), 3), 0);
}

TEST_F(DeviceReducerTest, WhatTheStreamDoesNotTakeGoesThroughTheHost) {
  EXPECT_EQ(Add({OnGpu(1), OnGpu(2)}, OnGpu(0), 3), 0) << "there is no stream";
  reducer_.SetStream(0, &stream_);
  EXPECT_EQ(Add({Host(1), OnGpu(2)}, OnGpu(0), 3), 0) << "a source of the host's";
  EXPECT_EQ(Add({OnGpu(1), OnGpu(2)}, Host(0), 3), 0) << "a result of the host's";
  EXPECT_EQ(Add({OnGpu(1), OnGpu(2, 1)}, OnGpu(0), 3), 0) << "a source of another GPU's";
  EXPECT_EQ(Add({OnGpu(1, 1), OnGpu(2, 1)}, OnGpu(0, 1), 3), 0) << "all another GPU's";
  const std::vector<Buffer> many(gpu::ReductionStream::kSourcesMax + 1, OnGpu(1));
  EXPECT_EQ(Add(many, OnGpu(0), static_cast<float>(many.size())), 0) << "too many";
}

TEST_F(DeviceReducerTest, ItIsDoneWhenTheStreamSaysSo) {
  reducer_.SetStream(0, &stream_);
  const Buffer out = OnGpu(0);
  const auto first = reducer_.Begin(DataType::kFloat32, RedOp::kSum, {OnGpu(1), OnGpu(2)}, out, kCount);
  const auto second = reducer_.Begin(DataType::kFloat32, RedOp::kProd, {out, OnGpu(5)}, out, kCount);
  EXPECT_FALSE(second->done()) << "the first look finished the first";
  EXPECT_TRUE(first->done());
  EXPECT_EQ(Seen(out)[0], 3);
  EXPECT_TRUE(second->done());
  EXPECT_EQ(Seen(out)[0], 15);
}

TEST_F(DeviceReducerTest, AFailureIsALineAndWaitsForNothing) {
  reducer_.SetStream(0, &stream_);
  const auto begun = reducer_.Begin(DataType::kFloat32, RedOp::kSum, {OnGpu(1), OnGpu(2)}, OnGpu(0), kCount);
  const Buffer out = OnGpu(0), source = OnGpu(1), host = Host(1);
  stream_.broken = true;
  begun->Wait();
  EXPECT_TRUE(begun->done());
  EXPECT_EQ(begun->error(), FakeReductionStream::kBroken);
  const auto later = reducer_.Begin(DataType::kFloat32, RedOp::kSum, {source}, out, kCount);
  EXPECT_TRUE(later->done());
  EXPECT_EQ(later->error(), FakeReductionStream::kBroken);
  gpu_.broken = true;
  EXPECT_EQ(reducer_.Begin(DataType::kFloat32, RedOp::kSum, {source, host}, out, kCount)->error(),
            "R2CC: cannot copy memory of GPU 0: it is broken");
}

}  // namespace
}  // namespace r2cc::net
