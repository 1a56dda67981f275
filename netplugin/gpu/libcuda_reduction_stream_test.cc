#include "netplugin/gpu/libcuda_reduction_stream.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace r2cc::gpu {
namespace {

constexpr char kStub[] = "netplugin/gpu/libstub_cuda.so";
constexpr int kUsed = 1;
constexpr unsigned char kImage[] = "stub";
constexpr size_t kCount = 100;
using State = ReductionStream::State;

class LibcudaReductionStreamTest : public testing::Test {
 protected:
  LibcudaReductionStreamTest() {
    stream_ = LibcudaReductionStream::Open(&cuda_, kUsed, kImage, &error_);
    EXPECT_NE(stream_, nullptr) << error_;
    stub_ = dlopen(kStub, RTLD_NOW);
    EXPECT_NE(stub_, nullptr) << dlerror();
    memory_ = cuda_.Allocate(kUsed, 1 << 20, &error_);
  }
  // All was done in the GPU's context and on the stream, and what said to be aligned was.
  ~LibcudaReductionStreamTest() override {
    cuda_.Free(kUsed, memory_);
    EXPECT_EQ(Stub<int()>("stub_libcuda_errors")(), 0);
  }

  template <typename Call>
  Call* Stub(const char* name) {
    return reinterpret_cast<Call*>(dlsym(stub_, name));
  }
  // A vector of the GPU's, each element `value`.
  float* Vector(size_t number, float value) {
    auto* const vector = reinterpret_cast<float*>(memory_) + number * 1024;
    std::fill_n(vector, kCount, value);
    return vector;
  }
  ReductionStream::Number Begin(const std::vector<float*>& sources, float* out, abi::RedOp op = abi::RedOp::kSum) {
    std::vector<const std::byte*> from;
    for (const float* const source : sources) from.push_back(reinterpret_cast<const std::byte*>(source));
    return stream_->Begin({abi::DataType::kFloat32, op, from, reinterpret_cast<std::byte*>(out), kCount}, &error_);
  }
  void Await(ReductionStream::Number number) {
    State state = State::kRunning;
    for (int looks = 0; looks < 1000 && state == State::kRunning; ++looks) state = stream_->Look(number, &error_);
    ASSERT_EQ(state, State::kDone) << error_;
  }

  Libcuda cuda_{kStub};
  std::string error_;
  void* stub_ = nullptr;
  std::byte* memory_ = nullptr;
  std::unique_ptr<LibcudaReductionStream> stream_;
};

TEST_F(LibcudaReductionStreamTest, AKernelRunsAndIsDoneWhenItsEventSaysSo) {
  float* const out = Vector(2, 0);
  const ReductionStream::Number number = Begin({Vector(0, 2), Vector(1, 3)}, out);
  ASSERT_EQ(number, 1u) << error_;
  EXPECT_EQ(out[0], 0) << "it has only begun";
  Await(number);
  EXPECT_EQ(out[0], 5);
  EXPECT_EQ(out[kCount - 1], 5);
}

TEST_F(LibcudaReductionStreamTest, TypeAndOperationChooseTheKernel) {
  float* const out = Vector(2, 0);
  Await(Begin({Vector(0, 2), Vector(1, 3)}, out, abi::RedOp::kProd));
  EXPECT_EQ(out[0], 6);
  Await(Begin({Vector(0, 2), Vector(1, 3)}, out, abi::RedOp::kMin));
  EXPECT_EQ(out[0], 2);
}

TEST_F(LibcudaReductionStreamTest, WhatIsNotAlignedIsSaidToBeSo) {
  float* const out = Vector(2, 0) + 1;
  Await(Begin({Vector(0, 2), Vector(1, 3)}, out));
  EXPECT_EQ(out[0], 5);
}

TEST_F(LibcudaReductionStreamTest, MoreThanThereAreEventsAreAllToldOnce) {
  float* const out = Vector(1, 0);
  float* const one = Vector(0, 1);
  std::vector<ReductionStream::Number> begun;
  for (int i = 0; i < 200; ++i) {
    begun.push_back(Begin({out, one}, out));
    ASSERT_EQ(begun.back(), static_cast<uint64_t>(i + 1)) << error_;
  }
  EXPECT_EQ(stream_->Look(begun.back(), &error_), State::kRunning);
  for (const ReductionStream::Number number : begun) {
    Await(number);
    EXPECT_GE(out[0], static_cast<float>(number));
  }
  EXPECT_EQ(out[kCount - 1], 200);
}

TEST_F(LibcudaReductionStreamTest, AsManySourcesAsAKernelTakes) {
  std::vector<float*> sources(ReductionStream::kSourcesMax, Vector(0, 1));
  float* const out = Vector(1, 0);
  Await(Begin(sources, out));
  EXPECT_EQ(out[0], static_cast<float>(ReductionStream::kSourcesMax));
}

TEST_F(LibcudaReductionStreamTest, AFailureIsOneLineAndFinal) {
  float* const out = Vector(2, 0);
  const ReductionStream::Number before = Begin({Vector(0, 2), Vector(1, 3)}, out);
  Stub<void(int)>("stub_libcuda_fail_launches")(1);
  EXPECT_EQ(Begin({out}, out), 0u);
  EXPECT_EQ(error_, "R2CC: cannot add up memory of GPU 1: error 1");
  Stub<void(int)>("stub_libcuda_fail_launches")(0);
  error_.clear();
  EXPECT_EQ(Begin({out}, out), 0u);
  EXPECT_EQ(error_, "R2CC: cannot add up memory of GPU 1: error 1");
  Await(before);
  EXPECT_EQ(out[0], 5) << "what began before is still waited for";
}

TEST_F(LibcudaReductionStreamTest, WhatCannotBeLoadedIsOneLine) {
  EXPECT_EQ(LibcudaReductionStream::Open(&cuda_, kUsed, {}, &error_), nullptr);
  EXPECT_EQ(error_, "R2CC: this build cannot add up memory of GPUs: it was made without nvcc");
  constexpr unsigned char kOther[] = "for another GPU";
  EXPECT_EQ(LibcudaReductionStream::Open(&cuda_, kUsed, kOther, &error_), nullptr);
  EXPECT_EQ(error_, "R2CC: cannot load the reduction onto GPU 1: error 1");
  EXPECT_EQ(LibcudaReductionStream::Open(&cuda_, 0, kImage, &error_), nullptr);
  EXPECT_EQ(error_, "R2CC: cannot use GPU 0: out of memory");
}

}  // namespace
}  // namespace r2cc::gpu
