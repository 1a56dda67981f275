#include "netplugin/link/link_progress.h"

#include <gtest/gtest.h>

#include <vector>

namespace r2cc::net {
namespace {

using plan::EvidenceCause;

constexpr Nanos kEvery = 25 * kNanosPerMs;

class LinkProgressTest : public testing::Test {
 protected:
  // A control connection and two for chunks, all of which have something on the way.
  LinkProgressTest() : paths_(3, {.delivered_bytes = 1000, .unacknowledged = true, .packet_bytes = 9000, .passed_packet_bytes = 1500}) {
    paths_[0].control = true;
    Sample();
  }
  void Sample(int samples = 1) {
    for (int i = 0; i < samples; ++i) {
      now_ += kEvery;
      for (size_t path = 0; path < paths_.size(); ++path)
        if (!stalled_[path]) ++paths_[path].delivered_bytes;
      progress_.Sample(paths_, now_);
    }
  }
  Nanos StalledFor() const { return progress_.stall().since == 0 ? 0 : now_ - progress_.stall().since; }

  LinkProgress progress_;
  std::vector<PathFacts> paths_;
  bool stalled_[3] = {};
  Nanos now_ = kNanosPerSecond;
};

TEST_F(LinkProgressTest, ProgressIsNoStall) {
  Sample(100);
  EXPECT_EQ(StalledFor(), 0);
  EXPECT_EQ(progress_.stall().stalled, 0);
  EXPECT_EQ(progress_.stall().paths, 3);
}

TEST_F(LinkProgressTest, OneStalledConnectionIsFoundAmongMovingOnes) {
  stalled_[2] = true;
  Sample(10);
  EXPECT_EQ(StalledFor(), 10 * kEvery);
  EXPECT_EQ(progress_.stall().stalled, 1);
  EXPECT_FALSE(progress_.stall().confirmed);
  paths_[2].timeouts = 1;
  Sample();
  EXPECT_TRUE(progress_.stall().confirmed);
  EXPECT_EQ(progress_.Diagnose(false), (LinkFault{EvidenceCause::kStalled, plan::StalledDetail(1, 3)}));
  stalled_[2] = false;
  Sample();
  EXPECT_EQ(StalledFor(), 0);
}

TEST_F(LinkProgressTest, AConfirmedStallComesBeforeALongerOneThatIsNot) {
  stalled_[1] = true;
  Sample(10);
  stalled_[2] = true;
  paths_[2].timeouts = 1;
  Sample(4);
  EXPECT_TRUE(progress_.stall().confirmed);
  EXPECT_EQ(StalledFor(), 4 * kEvery);
}

TEST_F(LinkProgressTest, NothingOnTheWayAndAClosedWindowAreNoStall) {
  stalled_[1] = stalled_[2] = true;
  paths_[1].unacknowledged = false;
  paths_[2].window_open = false;
  paths_[2].timeouts = 5;
  Sample(100);
  EXPECT_EQ(StalledFor(), 0);
  // The clock begins when the window opens.
  paths_[2].window_open = true;
  Sample(3);
  EXPECT_EQ(StalledFor(), 2 * kEvery);
}

TEST_F(LinkProgressTest, TheControlConnectionMayWaitBehindChunksThatMove) {
  stalled_[0] = true;
  paths_[0].timeouts = 1;
  Sample(20);
  EXPECT_FALSE(progress_.stall().confirmed);
  paths_[0].timeouts = 2;
  Sample();
  EXPECT_TRUE(progress_.stall().confirmed);
  // Where no chunk moves either, nothing excuses it.
  paths_[0].timeouts = 1;
  paths_[1].unacknowledged = paths_[2].unacknowledged = false;
  stalled_[1] = stalled_[2] = true;
  Sample();
  EXPECT_TRUE(progress_.stall().confirmed);
}

TEST_F(LinkProgressTest, WhileProvingTheLossOfAllLargePacketsShowsThatTheSizeMatters) {
  stalled_[1] = stalled_[2] = true;
  Sample(5);
  EXPECT_EQ(progress_.Diagnose(true), (LinkFault{EvidenceCause::kLargeLost, 1500}));
  // Under load one sick member of a LAG may have all connections for chunks.
  EXPECT_EQ(progress_.Diagnose(false), (LinkFault{EvidenceCause::kStalled, plan::StalledDetail(2, 3)}));
}

TEST_F(LinkProgressTest, WhileProvingOneLargePacketThatPassesShowsThatTheSizeDoesNotMatter) {
  stalled_[1] = true;
  Sample(5);
  EXPECT_EQ(progress_.Diagnose(true), (LinkFault{EvidenceCause::kStalled, plan::StalledDetail(1, 3)}));
}

TEST_F(LinkProgressTest, NoSizeIsNamedOfWhichNonePassed) {
  stalled_[1] = stalled_[2] = true;
  paths_[1].passed_packet_bytes = 0;
  Sample(5);
  EXPECT_EQ(progress_.Diagnose(true).cause, EvidenceCause::kStalled);
}

TEST_F(LinkProgressTest, ALinkOnWhichNothingMovesIsSilent) {
  stalled_[0] = stalled_[1] = stalled_[2] = true;
  Sample(5);
  EXPECT_EQ(progress_.Diagnose(true), (LinkFault{EvidenceCause::kSilence, 0}));
  EXPECT_EQ(LinkProgress().Diagnose(true), (LinkFault{EvidenceCause::kSilence, 0}));
}

TEST_F(LinkProgressTest, ANewIncarnationBeginsWithoutAPast) {
  stalled_[1] = true;
  Sample(5);
  progress_.Begin();
  EXPECT_EQ(progress_.stall().since, 0);
  Sample();
  EXPECT_EQ(StalledFor(), 0);
}

// A queue pair carries control, too. Nobody else is silent then.
TEST(LinkProgress, AQueuePairThatStallsIsTheOneConnectionOfItsLink) {
  LinkProgress progress;
  const std::vector<PathFacts> pair = {{.delivered_bytes = 7, .unacknowledged = true, .timeouts = 1}};
  for (int sample = 0; sample < 3; ++sample) progress.Sample(pair, kNanosPerSecond + sample * kEvery);
  EXPECT_TRUE(progress.stall().confirmed);
  EXPECT_EQ(progress.Diagnose(false), (LinkFault{EvidenceCause::kStalled, plan::StalledDetail(1, 1)}));
}

TEST(LinkProgress, ADeviceMaySilentlyWorkOnALargeRequestForAsLongAsItTakes) {
  LinkProgress progress;
  const std::vector<PathFacts> pair = {{.unacknowledged = true, .timeouts = 1, .silent_most = 300 * kNanosPerMs}};
  Nanos now = kNanosPerSecond;
  progress.Sample(pair, now);
  progress.Sample(pair, now += 300 * kNanosPerMs);
  EXPECT_EQ(progress.stall().since, kNanosPerSecond);
  EXPECT_FALSE(progress.stall().confirmed);
  progress.Sample(pair, now += kEvery);
  EXPECT_TRUE(progress.stall().confirmed);
}

// The process has to read it: another path makes that no quicker.
TEST(LinkProgress, KnowsWhenThePeersKernelHasAllOfTheDataCheck) {
  LinkProgress progress;
  progress.Begin();
  EXPECT_FALSE(progress.bulk_delivered()) << "nothing is known yet";
  PathFacts control{.delivered_bytes = 10, .unacknowledged = true, .control = true};
  PathFacts bulk[] = {{.delivered_bytes = 4096}, {.unacknowledged = true}};
  progress.Sample(std::vector<PathFacts>{control, bulk[0], bulk[1]}, kNanosPerSecond);
  EXPECT_FALSE(progress.bulk_delivered());
  bulk[1] = {.delivered_bytes = 4096};
  progress.Sample(std::vector<PathFacts>{control, bulk[0], bulk[1]}, 2 * kNanosPerSecond);
  EXPECT_TRUE(progress.bulk_delivered());
  progress.Begin();
  EXPECT_FALSE(progress.bulk_delivered());
}

}  // namespace
}  // namespace r2cc::net
