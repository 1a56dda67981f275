#include "netplugin/transport/workload_classifier.h"

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

struct WorkloadClassifierTest : testing::Test {
  void Account(const Moved& moved, uint64_t times) {
    for (uint64_t i = 0; i < times; ++i) workload.Account(moved.message_bytes, moved.bytes);
  }
  WorkloadClassifier workload{kAfterBytes};
};

TEST_F(WorkloadClassifierTest, KnowsThatLargeMessagesAreAbout) {
  Account(kSmall, 10);
  EXPECT_FALSE(workload.has_large());
  EXPECT_FALSE(workload.has_bulk());
  Account(kLarge, 1);
  EXPECT_TRUE(workload.has_large());
  Account(kSmall, WorkloadClassifier::kSmallMost);
  EXPECT_FALSE(workload.has_large());
}

TEST_F(WorkloadClassifierTest, IsAfterSoManyBytesOfLargeMessages) {
  Account(kLarge, kAfterBytes / kChunkBytes - 1);
  EXPECT_FALSE(workload.is_bulk());
  Account(kLarge, 1);
  EXPECT_TRUE(workload.is_bulk());
}

TEST_F(WorkloadClassifierTest, IsAfterSoManyBytesOfEagerMessagesThatAreWorthIt) {
  Account(kEager, kAfterBytes / kEagerBytes - 1);
  EXPECT_FALSE(workload.is_bulk());
  Account(kEager, 1);
  EXPECT_TRUE(workload.is_bulk());
  EXPECT_FALSE(workload.has_large());
}

TEST_F(WorkloadClassifierTest, EagerMessagesEndARunOfLargeOnesButNotOfBulk) {
  Account(kLarge, kAfterBytes / kChunkBytes);
  Account(kEager, WorkloadClassifier::kSmallMost);
  EXPECT_TRUE(workload.is_bulk());
  EXPECT_TRUE(workload.has_bulk());
  EXPECT_FALSE(workload.has_large());
}

TEST_F(WorkloadClassifierTest, RestsUntilTheNextLargeMessage) {
  Account(kLarge, kAfterBytes / kChunkBytes);
  workload.Idle();
  EXPECT_FALSE(workload.is_bulk());
  EXPECT_TRUE(workload.has_bulk()) << "the peer's workers may be at it already";
  Account(kSmall, 1);
  EXPECT_FALSE(workload.is_bulk());
  Account(kLarge, 1);
  EXPECT_TRUE(workload.is_bulk());
}

TEST_F(WorkloadClassifierTest, GoesOnWhenWhatWasCountedMovesOn) {
  Account(kLarge, kAfterBytes / kChunkBytes);
  workload.Idle();
  workload.Resume(kSmall.message_bytes);
  EXPECT_FALSE(workload.is_bulk());
  workload.Resume(kLarge.message_bytes);
  EXPECT_TRUE(workload.is_bulk());
}

TEST_F(WorkloadClassifierTest, SmallMessagesEndAlsoOneThatRests) {
  Account(kLarge, kAfterBytes / kChunkBytes);
  workload.Idle();
  Account(kSmall, WorkloadClassifier::kSmallMost);
  Account(kLarge, 1);
  EXPECT_FALSE(workload.is_bulk());
}

TEST_F(WorkloadClassifierTest, OneThatAlwaysIsDoesNotRest) {
  WorkloadClassifier always(0);
  always.Idle();
  EXPECT_TRUE(always.is_bulk());
}

TEST_F(WorkloadClassifierTest, TheLastChunkOfALargeMessageIsNoSmallMessage) {
  Account(kLarge, kAfterBytes / kChunkBytes);
  Account({512 * 1024 + 8, 8}, 1000);
  EXPECT_TRUE(workload.is_bulk());
}

TEST_F(WorkloadClassifierTest, AFewSmallMessagesDoNotEndIt) {
  Account(kLarge, kAfterBytes / kChunkBytes);
  for (int i = 0; i < 100; ++i) {
    Account(kSmall, WorkloadClassifier::kSmallMost - 1);
    EXPECT_TRUE(workload.is_bulk());
    Account(kLarge, 1);
  }
}

TEST_F(WorkloadClassifierTest, EmptyMessagesAreNoSmallMessages) {
  Account(kLarge, kAfterBytes / kChunkBytes);
  Account({0, 0}, 1000);
  EXPECT_TRUE(workload.is_bulk());
  EXPECT_TRUE(workload.has_large());
  workload.Idle();
  Account({0, 0}, 1);
  EXPECT_FALSE(workload.is_bulk());
}

TEST_F(WorkloadClassifierTest, ARunOfSmallMessagesEndsItAndItBeginsAnew) {
  Account(kLarge, 100 * kAfterBytes / kChunkBytes);
  Account(kSmall, WorkloadClassifier::kSmallMost);
  EXPECT_FALSE(workload.is_bulk());
  Account(kLarge, kAfterBytes / kChunkBytes - 1);
  EXPECT_FALSE(workload.is_bulk());
  Account(kLarge, 1);
  EXPECT_TRUE(workload.is_bulk());
}

TEST_F(WorkloadClassifierTest, SmallMessagesAloneAreNone) {
  Account({WorkloadClassifier::kHandedOverBytes, WorkloadClassifier::kHandedOverBytes}, 1000);
  EXPECT_FALSE(workload.is_bulk());
}

TEST(WorkloadClassifier, IsAlwaysAfterNothing) {
  WorkloadClassifier workload(0);
  EXPECT_TRUE(workload.is_bulk());
  for (int i = 0; i < 100; ++i) workload.Account(kSmall.message_bytes, kSmall.bytes);
  EXPECT_TRUE(workload.is_bulk());
  EXPECT_FALSE(workload.has_large());
  workload.Account(kLarge.message_bytes, kLarge.bytes);
  EXPECT_TRUE(workload.has_large());
}

}  // namespace
}  // namespace r2cc::net
