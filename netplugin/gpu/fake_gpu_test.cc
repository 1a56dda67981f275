#include "netplugin/gpu/fake_gpu.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace r2cc::gpu {
namespace {

class FakeGpuTest : public testing::Test {
 protected:
  std::string Seen(const std::byte* at) {
    char bytes[3] = {};
    EXPECT_TRUE(gpu_.Copy(0, bytes, at, 2, &error_));
    return bytes;
  }
  void Write(const std::string& nic, std::byte* to, const char* bytes) {
    gpu_.Placing(nic, to, 2);
    std::memcpy(to, bytes, 2);
  }

  FakeGpu gpu_;
  std::string error_;
  std::byte* const memory_ = gpu_.Allocate(0, 64, &error_);
};

TEST_F(FakeGpuTest, AWriteOfANicShowsAfterItsOwnFlush) {
  Write("a", memory_, "AA");
  Write("b", memory_ + 8, "BB");
  EXPECT_EQ(Seen(memory_), "");
  gpu_.Flushed("b", memory_ + 8);
  EXPECT_EQ(Seen(memory_), "");
  EXPECT_EQ(Seen(memory_ + 8), "BB");
  gpu_.Flushed("a", memory_ + 32);
  EXPECT_EQ(Seen(memory_), "AA");
  EXPECT_EQ(gpu_.unseen(), 0u);
}

TEST_F(FakeGpuTest, NicsSeeWritesOfTheGpuAtOnce) {
  EXPECT_TRUE(gpu_.Copy(0, memory_ + 4, "cd", 2, &error_));
  EXPECT_EQ(std::memcmp(memory_ + 4, "cd", 2), 0);
  EXPECT_EQ(Seen(memory_ + 4), "cd");
}

TEST_F(FakeGpuTest, HostMemoryIsNobodys) {
  EXPECT_FALSE(gpu_.Of(&error_).has_value());
  EXPECT_EQ(gpu_.Of(memory_ + 63), 0);
  EXPECT_FALSE(gpu_.Of(memory_ + 64).has_value());
}

}  // namespace
}  // namespace r2cc::gpu
