// The step that the fake device runs is also what nvcc compiles. That it runs on a GPU is not tested.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <span>

#include "observe/cuda/kernels.h"

namespace r2cc::gpu {
namespace {

TEST(Kernels, TheStepIsAFatbin) {
  const std::span<const unsigned char> image = ObserveStepImage();
  if (image.empty()) GTEST_SKIP() << "needs nvcc: compiles a kernel";
  ASSERT_GT(image.size(), 4096U);
  uint32_t magic = 0;
  std::memcpy(&magic, image.data(), sizeof(magic));
  EXPECT_EQ(magic, 0xba55ed50);
}

}  // namespace
}  // namespace r2cc::gpu
