// The stand-in for arc4random_buf().
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>

extern "C" void arc4random_buf(void* buffer, size_t bytes) noexcept;

namespace {

std::string Random(size_t bytes) {
  std::string text(bytes, '\0');
  arc4random_buf(text.data(), text.size());
  return text;
}

// More than the kernel gives at once to who may be interrupted: 256 bytes.
TEST(Arc4Random, FillsAllOfIt) {
  constexpr size_t kBytes = 100'000;
  const std::string one = Random(kBytes), other = Random(kBytes);
  EXPECT_NE(one, other);
  // By chance one byte in 256 is zero: 4 in the last 1,000, and never all of them.
  EXPECT_LT(std::count(one.end() - 1000, one.end(), '\0'), 100);
  EXPECT_EQ(Random(0), "");
}

}  // namespace
