#include "netplugin/transport/verbs/gpu_proof.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "netplugin/transport/verbs/fake_gpus.h"

namespace r2cc::net::verbs {
namespace {

class GpuProofTest : public FakeGpus {
 protected:
  GpuProof::Options Options() {
    return {&gpu_, &clock_, [this] { return static_cast<uint32_t>(time_.Random()); }, [this] { time_.RunFor(1'000); }};
  }
  bool Show(MemoryKind kind) {
    error_.clear();
    return GpuProof(Options()).Show(device_, {}, 0, kind, &error_);
  }

  const std::shared_ptr<Device> device_ = Open(0);
};

TEST_F(GpuProofTest, BytesGoBothWays) {
  EXPECT_TRUE(Show(MemoryKind::kCuda)) << error_;
  EXPECT_TRUE(Show(MemoryKind::kDmaBuf)) << error_;
  EXPECT_EQ(gpu_.copies, 4);
  EXPECT_EQ(gpu_.Of(gpu_.Allocate(0, 1, &error_)), 0) << "what was allocated for it is free again";
}

TEST_F(GpuProofTest, BytesThatDoNotArriveAreFoundOut) {
  astray_ = true;
  EXPECT_FALSE(Show(MemoryKind::kCuda));
  EXPECT_EQ(error_,
            "R2CC: the RDMA device mlx5_0 does not reach the memory of GPU 0 by peer memory: what is written there does not arrive");
}

TEST_F(GpuProofTest, AFailureIsALogLineAndNothingMore) {
  faulty_.FailCall(Call::kRegister, 2, EFAULT);
  EXPECT_FALSE(Show(MemoryKind::kDmaBuf));
  EXPECT_EQ(error_,
            "R2CC: the RDMA device mlx5_0 does not reach the memory of GPU 0 by dma-buf: its memory cannot be registered: Bad address");
  gpu_.dma_buf = false;
  EXPECT_FALSE(Show(MemoryKind::kDmaBuf));
  EXPECT_NE(error_.find("the driver gives no dma-buf"), std::string::npos);
  gpu_.broken = true;
  EXPECT_FALSE(Show(MemoryKind::kCuda));
  EXPECT_NE(error_.find("it is broken"), std::string::npos);
  gpu_.full = true;
  EXPECT_FALSE(Show(MemoryKind::kCuda));
  EXPECT_NE(error_.find("out of memory"), std::string::npos);
}

// A device that answers nothing: the proof ends.
TEST_F(GpuProofTest, ASilentDeviceIsNotWaitedForForEver) {
  fabric_.SetSilent({0, "mlx5_0", 1}, true);
  EXPECT_FALSE(Show(MemoryKind::kCuda));
  EXPECT_NE(error_.find("a write there fails"), std::string::npos) << error_;
}

TEST_F(GpuProofTest, EachPathIsProvedOnce) {
  GpuPaths paths(Options());
  EXPECT_TRUE(paths.Proved(device_, {}, 0, MemoryKind::kCuda, &error_)) << error_;
  EXPECT_TRUE(paths.Proved(device_, {}, 0, MemoryKind::kCuda, &error_));
  EXPECT_EQ(gpu_.copies, 2);
  astray_ = true;
  auto other = Open(1);
  EXPECT_FALSE(paths.Proved(other, {}, 0, MemoryKind::kCuda, &error_));
  astray_ = false;
  error_.clear();
  EXPECT_FALSE(paths.Proved(other, {}, 0, MemoryKind::kCuda, &error_)) << "what failed once is not tried again";
  EXPECT_NE(error_.find("mlx5_1"), std::string::npos);
  // Opened anew it is another one.
  other->control()->Stop();
  other = nullptr;
  other = Open(1);
  EXPECT_TRUE(paths.Proved(other, {}, 0, MemoryKind::kCuda, &error_)) << error_;
}

}  // namespace
}  // namespace r2cc::net::verbs
