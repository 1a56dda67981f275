#include "nccl/roll.h"

#include <gtest/gtest.h>

#include <cstring>

namespace r2cc::nccl {
namespace {

using Kind = Verdict::Kind;

Attendee Of(uint32_t rank, uint32_t every = 256, uint64_t release = 3) { return {rank, 4, every, release}; }

TEST(Roll, AllAreThereOnceTheLastHasCheckedIn) {
  Roll roll;
  for (const uint32_t rank : {2U, 0U, 3U, 0U}) {
    EXPECT_TRUE(roll.CheckIn(Of(rank)));
    EXPECT_EQ(roll.Decide(0).kind, Kind::kNone);
  }
  EXPECT_TRUE(roll.CheckIn(Of(1)));
  EXPECT_EQ(roll.Decide(0), (Verdict{Kind::kAll, 0, 0}));
}

TEST(Roll, SilenceCountsOnlyFromTheFirstThatWaits) {
  Roll roll;
  roll.CheckIn(Of(1));
  roll.CheckIn(Of(3));
  EXPECT_EQ(roll.Decide(1000 * kNanosPerSecond).kind, Kind::kNone);
  roll.Want(1000 * kNanosPerSecond);
  roll.Want(1001 * kNanosPerSecond);
  EXPECT_EQ(roll.Decide(1000 * kNanosPerSecond + kRollGrace - 1).kind, Kind::kNone);
  EXPECT_EQ(roll.Decide(1000 * kNanosPerSecond + kRollGrace), (Verdict{Kind::kMissing, 0, 1}));
}

TEST(Roll, AVerdictNeverChanges) {
  Roll roll;
  roll.CheckIn(Of(0));
  roll.Want(0);
  const Verdict missing = roll.Decide(kRollGrace);
  EXPECT_EQ(missing, (Verdict{Kind::kMissing, 1, 0}));
  for (const uint32_t rank : {1U, 2U, 3U}) EXPECT_TRUE(roll.CheckIn(Of(rank)));
  EXPECT_EQ(roll.Decide(kRollGrace), missing);

  Roll all;
  for (uint32_t rank = 0; rank < 4; ++rank) all.CheckIn(Of(rank));
  ASSERT_EQ(all.Decide(0).kind, Kind::kAll);
  // One that comes again with other settings is a mistake of that rank's.
  all.CheckIn(Of(2, 64));
  EXPECT_EQ(all.Decide(0).kind, Kind::kAll);
}

TEST(Roll, AnotherReleaseOrIntervalIsNamed) {
  Roll roll;
  roll.CheckIn(Of(1));
  roll.CheckIn(Of(3, 64));
  roll.CheckIn(Of(2, 256, 4));
  EXPECT_EQ(roll.Decide(0), (Verdict{Kind::kDiffers, 2, 1}));
}

TEST(Roll, ARankThatCannotBelongToItIsRefused) {
  Roll roll;
  EXPECT_FALSE(roll.CheckIn({0, 0, 256, 3}));
  EXPECT_FALSE(roll.CheckIn({4, 4, 256, 3}));
  EXPECT_FALSE(roll.CheckIn({0, kRollRanksMax + 1, 256, 3}));
  EXPECT_EQ(roll.Decide(0).kind, Kind::kNone);
  EXPECT_TRUE(roll.CheckIn(Of(0)));
  EXPECT_FALSE(roll.CheckIn({1, 5, 256, 3}));
}

TEST(RollFrames, OnlyWholeOnesAreRead) {
  RollRequest request{.wants = 1, .key = 7, .rank = 1, .ranks = 4};
  const auto bytes = [](const auto& frame) { return std::as_bytes(std::span(&frame, 1)); };
  EXPECT_EQ(ParseRollRequest(bytes(request))->key, 7U);
  EXPECT_FALSE(ParseRollRequest(bytes(request).first(47)).has_value());
  for (uint32_t RollRequest::*field : {&RollRequest::magic, &RollRequest::wants, &RollRequest::zero}) {
    RollRequest other = request;
    other.*field += 1;
    EXPECT_FALSE(ParseRollRequest(bytes(other)).has_value());
  }
  RollReply reply{.kind = 3, .rank = 5, .speaker = 6};
  EXPECT_EQ(*ParseRollReply(bytes(reply)), (Verdict{Kind::kDiffers, 5, 6}));
  reply.kind = 4;
  EXPECT_EQ(ParseRollReply(bytes(reply))->kind, Kind::kNoRoom);
  reply.kind = 5;
  EXPECT_FALSE(ParseRollReply(bytes(reply)).has_value());
  EXPECT_FALSE(ParseRollReply(bytes(request)).has_value());
}

}  // namespace
}  // namespace r2cc::nccl
