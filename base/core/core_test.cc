#include <gtest/gtest.h>

#include <vector>

#include "base/core/check.h"
#include "base/core/clock.h"
#include "base/core/epoch.h"
#include "base/core/hash.h"

namespace r2cc {
namespace {

TEST(Hash, Crc32cMatchesThePublishedCheckValue) { EXPECT_EQ(Crc32c("123456789", 9), 0xe3069283u); }

TEST(Hash, Crc32cIsTheSameByTableAndByInstruction) {
  std::vector<unsigned char> bytes(300);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 37 + i / 7);
  EXPECT_EQ(Crc32cByTable("123456789", 9), 0xe3069283u);
  for (size_t begin = 0; begin < 9; ++begin)
    for (size_t length = 0; length + begin <= bytes.size(); ++length)
      ASSERT_EQ(Crc32c(&bytes[begin], length, 7), Crc32cByTable(&bytes[begin], length, 7)) << begin << " " << length;
}

TEST(Hash, Crc32cContinuesFromASeed) {
  const char text[] = "the quick brown fox jumps over the lazy dog";
  for (size_t cut = 0; cut < sizeof(text); ++cut)
    EXPECT_EQ(Crc32c(text + cut, sizeof(text) - cut, Crc32c(text, cut)), Crc32c(text, sizeof(text)));
}

TEST(Hash, Fnv1a64MatchesThePublishedValue) { EXPECT_EQ(Fnv1a64("a"), 0xaf63dc4c8601ec8cULL); }

TEST(Epoch, HasAnOrderWithinOneRunAlone) {
  const Epoch epoch{77, 900};
  EXPECT_TRUE((Epoch{77, 901}).LaterThan(epoch));
  EXPECT_FALSE(epoch.LaterThan(epoch));
  EXPECT_FALSE((Epoch{77, 899}).LaterThan(epoch));
  EXPECT_FALSE((Epoch{78, 901}).LaterThan(epoch));
  EXPECT_FALSE(epoch.LaterThan({78, 1}));
}

TEST(Clock, SteadyClockDoesNotGoBack) {
  SteadyClock clock;
  const Nanos first = clock.Now();
  EXPECT_LE(first, clock.Now());
}

TEST(CheckDeathTest, NamesTheConditionThatBroke) { EXPECT_DEATH(R2CC_CHECK(1 + 1 == 3), "invariant broken.*1 \\+ 1 == 3"); }

}  // namespace
}  // namespace r2cc
