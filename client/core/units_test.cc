#include "client/core/units.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace r2cc::client {
namespace {

TEST(Units, Bytes) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(512), "512 B");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatBytes((1ull << 30) - 1), "1 GiB");
  EXPECT_EQ(FormatBytes(64ull << 20), "64 MiB");
  EXPECT_EQ(FormatBytes(std::numeric_limits<uint64_t>::max()), "16384 PiB");
}

TEST(Units, Rates) {
  EXPECT_EQ(FormatRate(0), "?");
  EXPECT_EQ(FormatRate(500'000'000), "500 Mbit/s");
  EXPECT_EQ(FormatRate(2'500'000'000), "2.5 Gbit/s");
  EXPECT_EQ(FormatRate(400'000'000'000), "400 Gbit/s");
}

TEST(Units, Durations) {
  EXPECT_EQ(FormatDuration(-5), "0 s");
  EXPECT_EQ(FormatDuration(250'000), "250 us");
  EXPECT_EQ(FormatDuration(12'340'000), "12.3 ms");
  EXPECT_EQ(FormatDuration(4'000'000'000), "4.0 s");
  EXPECT_EQ(FormatDuration(182'000'000'000), "3 min 2 s");
  EXPECT_EQ(FormatDuration(7'500'000'000'000), "2 h 5 min");
  EXPECT_EQ(FormatDuration((3 * 86400 + 4 * 3600) * 1'000'000'000ll), "3 d 4 h");
}

TEST(Units, Permille) {
  EXPECT_EQ(FormatPermille(1000), "100%");
  EXPECT_EQ(FormatPermille(333), "33.3%");
  EXPECT_EQ(FormatPermille(0), "0%");
}

}  // namespace
}  // namespace r2cc::client
