// What fatbin.bzl embeds is what nvcc made.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <span>

#include "bazel/fatbin_specimen.h"

namespace r2cc::gpu {
namespace {

TEST(Fatbin, TheImageIsAFatbin) {
  const std::span<const unsigned char> image = SpecimenImage();
  if (image.empty()) GTEST_SKIP() << "needs nvcc: compiles a kernel";
  ASSERT_GT(image.size(), 16u);
  uint32_t magic = 0;
  std::memcpy(&magic, image.data(), sizeof(magic));
  EXPECT_EQ(magic, 0xba55ed50);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(image.data()) % 16, 0u);
}

}  // namespace
}  // namespace r2cc::gpu
