// A failure of a GPU's producer is one line, and the model goes on.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "observe/cuda/cuda_producer.h"
#include "observe/cuda/cuda_rig.h"

namespace r2cc::observe {
namespace {

TEST_F(CudaProducerTest, AStepThatDoesNotEndIsCounted) {
  const auto producer = Open({.ring_bytes = 1 << 16, .device_bytes = 1 << 16});
  Layout layout;
  layout.taps = {{"x", Operator::kCopy, Dtype::kU64, 0, false, {}}, {"y", Operator::kCopy, Dtype::kU64, 0, false, {}}};
  uint32_t id = 0;
  ASSERT_TRUE(producer->AddLayout(layout, &id, &error_)) << error_;
  const uint64_t x = 1;
  ASSERT_EQ(producer->Begin(id, Phase::kDecode, {}, &error_), Producer::Began::kTaken);
  ASSERT_EQ(producer->Begin(id, Phase::kDecode, {}, &error_), Producer::Began::kTaken);
  ASSERT_TRUE(producer->CopyLate(0, {&x, {}, {}}, &error_));
  EXPECT_FALSE(producer->Finish(&error_));
  EXPECT_EQ(error_, "y: it was not copied in this step");
  ASSERT_TRUE(producer->Flush(kNanosPerSecond, &error_)) << error_;
  EXPECT_EQ(producer->counts(), (Counts{0, 0, 0, 2, 0}));
}

// As after a job's own kernel that wrote where it may not: nothing more is read, and the job gets nothing but a line.
TEST_F(CudaProducerTest, AnErrorOfTheDriverClosesTheProducerWithItsCause) {
  const auto producer = Open({.ring_bytes = 1 << 16, .device_bytes = 1 << 16});
  const auto reader = Reader(producer.get());
  Layout layout;
  layout.taps = {{"x", Operator::kCopy, Dtype::kU64, 0, false, {}}};
  uint32_t id = 0;
  ASSERT_TRUE(producer->AddLayout(layout, &id, &error_)) << error_;
  const uint64_t x = 1;
  const auto step = [&] {
    return producer->Begin(id, Phase::kDecode, {}, &error_) == Producer::Began::kTaken && producer->CopyLate(0, {&x, {}, {}}, &error_) &&
           producer->Finish(&error_) && producer->Flush(kNanosPerSecond, &error_);
  };
  ASSERT_TRUE(step()) << error_;
  Of<void(bool)>("stub_fail_copies")(true);
  EXPECT_FALSE(step());
  const std::string cause = "a copy from the device failed: R2CC: cannot copy from GPU 0: the stub's error";
  EXPECT_EQ(error_, cause);
  Of<void(bool)>("stub_fail_copies")(false);
  EXPECT_FALSE(step()) << "it does not begin again";
  EXPECT_EQ(error_, cause);
  RecordView view;
  EXPECT_EQ(reader->Next(&view), Found::kRecord) << "what was whole before stays";
  EXPECT_EQ(reader->Next(&view), Found::kEnd);
  EXPECT_EQ(reader->life(), Life::kFailed);
  EXPECT_EQ(reader->Cause(), cause);
  producer->Close();
}

TEST_F(CudaProducerTest, OneLineForWhatIsRefused) {
  const auto refused = [&](ProducerOptions options, int gpu = 0) {
    options.run = "refused";
    EXPECT_EQ(CudaProducer::Open(options, gpu, &clock_, &error_), nullptr);
    return error_;
  };
  EXPECT_EQ(refused({}, 1), "there is no GPU 1: this process sees 1");
  EXPECT_EQ(refused({.device_bytes = 1}), "the device's ring would have 1 bytes; it has 4096 to 274877906944");
  Of<void(bool)>("stub_lock_memory")(false);
  EXPECT_EQ(refused({}),
            "R2CC: cannot lock host memory for GPU 0: the stub's error: the host's ring has 512 MiB; a smaller host_mib may do");
  Of<void(bool)>("stub_lock_memory")(true);
  const auto producer = Open({.ring_bytes = 1 << 20, .device_bytes = 8192});
  Layout layout;
  // Without rows it could be held.
  layout.taps = {{"x", Operator::kCopy, Dtype::kU8, 0, true, {5000}}};
  layout.rows_most = 1;
  uint32_t id = 0;
  EXPECT_FALSE(producer->AddLayout(layout, &id, &error_));
  EXPECT_EQ(error_,
            "a step has up to 5120 bytes and must fit twice into the device's ring of 8192: raise device_mib, or take fewer taps, rows, or "
            "statistics instead of copies");
  layout.rows_most = 0;
  layout.taps[0] = {"x", Operator::kCopy, Dtype::kU8, 0, false, {600'000}};
  EXPECT_FALSE(producer->AddLayout(layout, &id, &error_)) << "it does not fit twice into the host's ring either";
  layout.taps[0].shape = {8};
  ASSERT_TRUE(producer->AddLayout(layout, &id, &error_)) << error_;
  ASSERT_EQ(producer->Begin(id, Phase::kDecode, {}, &error_), Producer::Began::kTaken);
  const uint64_t shape[] = {8};
  // The host's ring is locked: the driver knows it as host memory.
  EXPECT_FALSE(producer->CopyLate(0, {producer->memory()->ring().data(), shape, {}}, &error_));
  EXPECT_EQ(error_, "x: it is not in the memory of GPU 0");
  EXPECT_EQ(producer->Begin(3, Phase::kDecode, {}, &error_), Producer::Began::kRefused);
  EXPECT_EQ(error_, "there is no layout 3");
  producer->Close();
  EXPECT_EQ(producer->Begin(id, Phase::kDecode, {}, &error_), Producer::Began::kRefused);
  EXPECT_EQ(error_, "the producer is closed");
}

TEST(CudaDeviceName, IsOneOfThree) {
  EXPECT_EQ(CudaProducer::NumberOf("cuda"), 0);
  EXPECT_EQ(CudaProducer::NumberOf("cuda:7"), 7);
  for (const char* name : {"host", "cuda:", "cuda:x", "cuda:-1", "cuda:1000", "gpu"}) EXPECT_EQ(CudaProducer::NumberOf(name), -1) << name;
}

}  // namespace
}  // namespace r2cc::observe
