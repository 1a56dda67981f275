#include "netplugin/flow/bulk_run.h"

#include <gtest/gtest.h>

namespace r2cc::net {
namespace {

constexpr uint64_t kAfterBytes = 1 << 20;
constexpr uint32_t kChunkBytes = 128 * 1024;

Chunk Large() { return {.message_bytes = 512 * 1024, .bytes = kChunkBytes}; }
constexpr uint32_t kEagerBytes = 16 * 1024;
Chunk Eager() { return {.message_bytes = kEagerBytes, .bytes = kEagerBytes, .eager = true}; }
Chunk Small() { return {.message_bytes = 8, .bytes = 8}; }

struct BulkRunTest : testing::Test {
  void Count(const Chunk& chunk, uint64_t times) {
    for (uint64_t i = 0; i < times; ++i) run.Count(chunk);
  }
  BulkRun run{kAfterBytes};
};

TEST_F(BulkRunTest, KnowsThatLargeMessagesAreAbout) {
  Count(Small(), 10);
  EXPECT_FALSE(run.has_large());
  EXPECT_FALSE(run.has_bulk());
  Count(Large(), 1);
  EXPECT_TRUE(run.has_large());
  Count(Small(), BulkRun::kSmallMost);
  EXPECT_FALSE(run.has_large());
}

TEST_F(BulkRunTest, IsAfterSoManyBytesOfLargeMessages) {
  Count(Large(), kAfterBytes / kChunkBytes - 1);
  EXPECT_FALSE(run.is_bulk());
  Count(Large(), 1);
  EXPECT_TRUE(run.is_bulk());
}

TEST_F(BulkRunTest, IsAfterSoManyBytesOfEagerMessagesThatAreWorthIt) {
  Count(Eager(), kAfterBytes / kEagerBytes - 1);
  EXPECT_FALSE(run.is_bulk());
  Count(Eager(), 1);
  EXPECT_TRUE(run.is_bulk());
  EXPECT_FALSE(run.has_large());
}

TEST_F(BulkRunTest, EagerMessagesEndARunOfLargeOnesButNotOfBulk) {
  Count(Large(), kAfterBytes / kChunkBytes);
  Count(Eager(), BulkRun::kSmallMost);
  EXPECT_TRUE(run.is_bulk());
  EXPECT_TRUE(run.has_bulk());
  EXPECT_FALSE(run.has_large());
}

TEST_F(BulkRunTest, RestsUntilTheNextLargeMessage) {
  Count(Large(), kAfterBytes / kChunkBytes);
  run.Rest();
  EXPECT_FALSE(run.is_bulk());
  EXPECT_TRUE(run.has_bulk()) << "the peer's movers may be at it already";
  Count(Small(), 1);
  EXPECT_FALSE(run.is_bulk());
  Count(Large(), 1);
  EXPECT_TRUE(run.is_bulk());
}

TEST_F(BulkRunTest, SmallMessagesEndAlsoOneThatRests) {
  Count(Large(), kAfterBytes / kChunkBytes);
  run.Rest();
  Count(Small(), BulkRun::kSmallMost);
  Count(Large(), 1);
  EXPECT_FALSE(run.is_bulk());
}

TEST_F(BulkRunTest, OneThatAlwaysIsDoesNotRest) {
  BulkRun always(0);
  always.Rest();
  EXPECT_TRUE(always.is_bulk());
}

TEST_F(BulkRunTest, TheLastChunkOfALargeMessageIsNoSmallMessage) {
  Count(Large(), kAfterBytes / kChunkBytes);
  Count({.message_bytes = 512 * 1024 + 8, .bytes = 8}, 1000);
  EXPECT_TRUE(run.is_bulk());
}

TEST_F(BulkRunTest, AFewSmallMessagesDoNotEndIt) {
  Count(Large(), kAfterBytes / kChunkBytes);
  for (int i = 0; i < 100; ++i) {
    Count(Small(), BulkRun::kSmallMost - 1);
    EXPECT_TRUE(run.is_bulk());
    Count(Large(), 1);
  }
}

TEST_F(BulkRunTest, ARunOfSmallMessagesEndsItAndItBeginsAnew) {
  Count(Large(), 100 * kAfterBytes / kChunkBytes);
  Count(Small(), BulkRun::kSmallMost);
  EXPECT_FALSE(run.is_bulk());
  Count(Large(), kAfterBytes / kChunkBytes - 1);
  EXPECT_FALSE(run.is_bulk());
  Count(Large(), 1);
  EXPECT_TRUE(run.is_bulk());
}

TEST_F(BulkRunTest, SmallMessagesAloneAreNone) {
  Count({.message_bytes = BulkRun::kHandedOverBytes, .bytes = BulkRun::kHandedOverBytes}, 1000);
  EXPECT_FALSE(run.is_bulk());
}

TEST(BulkRun, IsAlwaysAfterNothing) {
  BulkRun run(0);
  EXPECT_TRUE(run.is_bulk());
  for (int i = 0; i < 100; ++i) run.Count(Small());
  EXPECT_TRUE(run.is_bulk());
  EXPECT_FALSE(run.has_large());
  run.Count(Large());
  EXPECT_TRUE(run.has_large());
}

}  // namespace
}  // namespace r2cc::net
