#include "netplugin/transport/bulk_run.h"

#include <gtest/gtest.h>

namespace r2cc::net {
namespace {

constexpr uint64_t kAfterBytes = 1 << 20;
constexpr uint32_t kChunkBytes = 128 * 1024;

constexpr uint32_t kEagerBytes = 16 * 1024;
struct Moved {
  uint64_t message_bytes, bytes;
};
constexpr Moved kLarge{512 * 1024, kChunkBytes}, kEager{kEagerBytes, kEagerBytes}, kSmall{8, 8};

struct BulkRunTest : testing::Test {
  void Count(const Moved& moved, uint64_t times) {
    for (uint64_t i = 0; i < times; ++i) run.Count(moved.message_bytes, moved.bytes);
  }
  BulkRun run{kAfterBytes};
};

TEST_F(BulkRunTest, KnowsThatLargeMessagesAreAbout) {
  Count(kSmall, 10);
  EXPECT_FALSE(run.has_large());
  EXPECT_FALSE(run.has_bulk());
  Count(kLarge, 1);
  EXPECT_TRUE(run.has_large());
  Count(kSmall, BulkRun::kSmallMost);
  EXPECT_FALSE(run.has_large());
}

TEST_F(BulkRunTest, IsAfterSoManyBytesOfLargeMessages) {
  Count(kLarge, kAfterBytes / kChunkBytes - 1);
  EXPECT_FALSE(run.is_bulk());
  Count(kLarge, 1);
  EXPECT_TRUE(run.is_bulk());
}

TEST_F(BulkRunTest, IsAfterSoManyBytesOfEagerMessagesThatAreWorthIt) {
  Count(kEager, kAfterBytes / kEagerBytes - 1);
  EXPECT_FALSE(run.is_bulk());
  Count(kEager, 1);
  EXPECT_TRUE(run.is_bulk());
  EXPECT_FALSE(run.has_large());
}

TEST_F(BulkRunTest, EagerMessagesEndARunOfLargeOnesButNotOfBulk) {
  Count(kLarge, kAfterBytes / kChunkBytes);
  Count(kEager, BulkRun::kSmallMost);
  EXPECT_TRUE(run.is_bulk());
  EXPECT_TRUE(run.has_bulk());
  EXPECT_FALSE(run.has_large());
}

TEST_F(BulkRunTest, RestsUntilTheNextLargeMessage) {
  Count(kLarge, kAfterBytes / kChunkBytes);
  run.Rest();
  EXPECT_FALSE(run.is_bulk());
  EXPECT_TRUE(run.has_bulk()) << "the peer's workers may be at it already";
  Count(kSmall, 1);
  EXPECT_FALSE(run.is_bulk());
  Count(kLarge, 1);
  EXPECT_TRUE(run.is_bulk());
}

TEST_F(BulkRunTest, GoesOnWhenWhatWasCountedMovesOn) {
  Count(kLarge, kAfterBytes / kChunkBytes);
  run.Rest();
  run.Moves(kSmall.message_bytes);
  EXPECT_FALSE(run.is_bulk());
  run.Moves(kLarge.message_bytes);
  EXPECT_TRUE(run.is_bulk());
}

TEST_F(BulkRunTest, SmallMessagesEndAlsoOneThatRests) {
  Count(kLarge, kAfterBytes / kChunkBytes);
  run.Rest();
  Count(kSmall, BulkRun::kSmallMost);
  Count(kLarge, 1);
  EXPECT_FALSE(run.is_bulk());
}

TEST_F(BulkRunTest, OneThatAlwaysIsDoesNotRest) {
  BulkRun always(0);
  always.Rest();
  EXPECT_TRUE(always.is_bulk());
}

TEST_F(BulkRunTest, TheLastChunkOfALargeMessageIsNoSmallMessage) {
  Count(kLarge, kAfterBytes / kChunkBytes);
  Count({512 * 1024 + 8, 8}, 1000);
  EXPECT_TRUE(run.is_bulk());
}

TEST_F(BulkRunTest, AFewSmallMessagesDoNotEndIt) {
  Count(kLarge, kAfterBytes / kChunkBytes);
  for (int i = 0; i < 100; ++i) {
    Count(kSmall, BulkRun::kSmallMost - 1);
    EXPECT_TRUE(run.is_bulk());
    Count(kLarge, 1);
  }
}

TEST_F(BulkRunTest, EmptyMessagesAreNoSmallMessages) {
  Count(kLarge, kAfterBytes / kChunkBytes);
  Count({0, 0}, 1000);
  EXPECT_TRUE(run.is_bulk());
  EXPECT_TRUE(run.has_large());
  run.Rest();
  Count({0, 0}, 1);
  EXPECT_FALSE(run.is_bulk());
}

TEST_F(BulkRunTest, ARunOfSmallMessagesEndsItAndItBeginsAnew) {
  Count(kLarge, 100 * kAfterBytes / kChunkBytes);
  Count(kSmall, BulkRun::kSmallMost);
  EXPECT_FALSE(run.is_bulk());
  Count(kLarge, kAfterBytes / kChunkBytes - 1);
  EXPECT_FALSE(run.is_bulk());
  Count(kLarge, 1);
  EXPECT_TRUE(run.is_bulk());
}

TEST_F(BulkRunTest, SmallMessagesAloneAreNone) {
  Count({BulkRun::kHandedOverBytes, BulkRun::kHandedOverBytes}, 1000);
  EXPECT_FALSE(run.is_bulk());
}

TEST(BulkRun, IsAlwaysAfterNothing) {
  BulkRun run(0);
  EXPECT_TRUE(run.is_bulk());
  for (int i = 0; i < 100; ++i) run.Count(kSmall.message_bytes, kSmall.bytes);
  EXPECT_TRUE(run.is_bulk());
  EXPECT_FALSE(run.has_large());
  run.Count(kLarge.message_bytes, kLarge.bytes);
  EXPECT_TRUE(run.has_large());
}

}  // namespace
}  // namespace r2cc::net
