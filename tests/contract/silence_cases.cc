// Silence, stopped and vanished processes, and the daemon's word.
#include "tests/contract/fixture.h"

namespace r2cc::contract {
namespace {

TEST_P(Contract, SilenceOfARailIsGivenUpInTime) {
  Make({.silence = 200 * kMs});
  Start(kRails);
  ASSERT_TRUE(TrafficMore(8));
  const Nanos since = world_->Now();
  world_->Silence(1, 1);
  ASSERT_TRUE(TrafficUntil([&] { return Fences() > 0; }));
  const Nanos took = world_->Now() - since;
  EXPECT_LT(took, options_.silence + (GetParam().real_time ? 400 * kMs : 50 * kMs) * Slack());
  ASSERT_TRUE(TrafficMore(16));
  EXPECT_EQ(Fences(), 1) << "and no other";
  EXPECT_EQ(Fences(0, 1), 1);
  for (const RailReport& report : world_->reports(0))
    if (report.what == RailReport::What::kLinkFenced) {
      EXPECT_EQ(report.cause, "silence");
    }
  ExpectAllWell();
}

// The rail's control connection answers all the time. A new incarnation passes, or does once large packets do.
TEST_P(Contract, SilenceOfWhatARailWasGivenIsFoundThoughTheRailAnswers) {
  for (const Loss loss : {Loss::kOneConnection, Loss::kLargePackets, Loss::kCompletions}) {
    SCOPED_TRACE(loss == Loss::kLargePackets ? "large packets" : loss == Loss::kCompletions ? "completions" : "one connection");
    Make();
    Start(kRails);
    ASSERT_TRUE(TrafficMore(8));
    if (!world_->Lose(0, 1, loss)) {
      if (loss == Loss::kCompletions) return TearDown();  // what has sockets has none
      GTEST_SKIP() << "needs the trait: packets that can be lost one by one";
    }
    const Nanos since = world_->Now();
    ASSERT_TRUE(TrafficUntil([&] { return Fences() > 0; }));
    const Nanos took = world_->Now() - since;
    EXPECT_LT(took, options_.silence + (GetParam().real_time ? 400 * kMs : 100 * kMs) * Slack());
    ASSERT_TRUE(TrafficMore(16));
    EXPECT_EQ(Fences(), 1) << "and no other";
    EXPECT_EQ(Fences(0, 1), 1);
    for (const RailReport& report : world_->reports(0))
      if (report.what == RailReport::What::kLinkFenced && loss == Loss::kCompletions) {
        EXPECT_EQ(report.cause, "stalled");
      }
    const int up = LinksUp(0, 1);
    world_->Lose(0, 1, Loss::kNothing);
    ASSERT_TRUE(TrafficUntil([&] { return LinksUp(0, 1) >= std::max(up, 2); })) << "repaired, and still shunned";
    ExpectAllWell();
    TearDown();
  }
}

TEST_P(Contract, SilenceOfTheOutOfBandChannelDisturbsNobody) {
  Make({.deadline = kShortDeadline, .silence = 100 * kMs});
  Start(kRails);
  world_->Silence(1, kOob);
  ASSERT_TRUE(TrafficFor(kShortDeadline + 300 * kMs));
  world_->Heal(1, kOob);
  world_->Cut(0, kOob);
  ASSERT_TRUE(TrafficFor(300 * kMs));
  world_->Heal(0, kOob);
  ExpectAllWell();
  EXPECT_EQ(Fences(), 0);
}

TEST_P(Contract, SilenceOfAStoppedPeerIsWaitedForWithoutLimit) {
  Make({.deadline = kShortDeadline, .silence = 100 * kMs});
  Start(kRails);
  for (const End end : {1, 0}) {
    ASSERT_TRUE(TrafficMore(8));
    for (const int flow : flows_) job_->Exchange(flow, 4 * kLarge);
    world_->StopProcess(end);
    job_->RunFor(kShortDeadline + 400 * kMs);
    world_->ContinueProcess(end);
    ASSERT_TRUE(job_->RunUntilDone(Patience())) << "stopped: end " << end;
  }
  ExpectAllWell();
  EXPECT_EQ(Fences(), 0) << "a stopped process is no fault";
}

TEST_P(Contract, SilenceOfABusyPeerIsNoFault) {
  Make({.silence = 100 * kMs});
  Start(kRails);
  for (int i = 0; i < 6; ++i) {
    const End end = i % 2;
    world_->StopProcess(end);
    job_->RunFor((20 + 40 * i) * kMs);  // below and above the silence
    world_->ContinueProcess(end);
    ASSERT_TRUE(TrafficFor(30 * kMs));
  }
  ExpectAllWell();
  EXPECT_EQ(Fences(), 0) << "a busy process is no fault";
}

// The peer's process is gone: an error, and one line that names it.
TEST_P(Contract, SilenceOfAVanishedProcessIsAnErrorSoon) {
  for (const End end : {1, 0}) ExpectErrorAfterDeathOf(end, false);
}

TEST_P(Contract, SilenceOfAVanishedProcessWhoseChildSleepsIsAnErrorSoon) {
  for (const End end : {1, 0}) ExpectErrorAfterDeathOf(end, true);
}

TEST_P(Contract, PageMovesTrafficAwayAndBack) {
  Make();
  Start(kRails);
  ASSERT_TRUE(TrafficMore(8));
  for (const End end : {0, 1}) world_->Publish(end, {{.node = 1, .rail = 2, .state = plan::PlannedState::kFailed, .weight_permille = 0}});
  ASSERT_TRUE(TrafficUntil([&] { return Fences(0, 2) > 0; })) << "nobody obeys";
  ASSERT_TRUE(TrafficMore(8));
  const uint64_t before = world_->LeftBytes(0, 2);
  ASSERT_TRUE(TrafficMore(32));
  EXPECT_LT(world_->LeftBytes(0, 2) - before, 256 * kKiB);
  EXPECT_EQ(Fences(), 1);
  const int up = LinksUp(0, 2);
  for (const End end : {0, 1}) world_->Publish(end, {});
  ASSERT_TRUE(TrafficUntil([&] { return LinksUp(0, 2) > up; })) << "forgiven, and still shunned";
  const uint64_t back = world_->LeftBytes(0, 2);
  ASSERT_TRUE(TrafficUntil([&] { return world_->LeftBytes(0, 2) - back > 4 * kMiB; }));
  ExpectAllWell();
}

TEST_P(Contract, PageWeightIsACeiling) {
  Make({.rail_bytes_per_s = 25'000'000});
  Start(kRails);
  for (const End end : {0, 1})
    world_->Publish(end, {{.node = 0, .rail = 1, .weight_permille = 250}, {.node = 0, .rail = 3, .weight_permille = 0}});
  ASSERT_TRUE(TrafficFor(200 * kMs));
  uint64_t before[kRails];
  for (int rail = 0; rail < kRails; ++rail) before[rail] = world_->LeftBytes(0, rail);
  ASSERT_TRUE(TrafficFor(800 * kMs));
  const auto carried = [&](int rail) { return static_cast<double>(world_->LeftBytes(0, rail) - before[rail]); };
  EXPECT_LT(carried(1), 0.35 * std::max(carried(0), carried(2)));
  EXPECT_GT(carried(1), 0.05 * carried(0)) << "a cap, not a ban";
  EXPECT_LT(carried(3), 64 * kKiB) << "weight 0 forbids";
  ExpectAllWell();
  EXPECT_EQ(Fences(), 0) << "a weight is no fault";
}

TEST_P(Contract, PageNeverTakesTheLastWay) {
  Make({.silence = 100 * kMs});
  Start(kRails);
  std::vector<World::Verdict> all;
  for (int rail = 0; rail < kRails; ++rail)
    all.push_back({.node = rail % 2, .rail = rail, .state = plan::PlannedState::kFailed, .weight_permille = 0});
  for (const End end : {0, 1}) world_->Publish(end, all);
  ASSERT_TRUE(TrafficFor(300 * kMs));
  ASSERT_TRUE(TrafficMore(16)) << "every rail condemned, none broken";
  // A verdict on the only rail that works.
  for (const End end : {0, 1}) world_->Publish(end, {});
  ASSERT_TRUE(TrafficMore(8));
  for (int rail = 0; rail < 3; ++rail) world_->Cut(0, rail);
  ASSERT_TRUE(TrafficMore(8));
  for (const End end : {0, 1}) world_->Publish(end, {{.node = 0, .rail = 3, .state = plan::PlannedState::kFailed, .weight_permille = 0}});
  ASSERT_TRUE(TrafficFor(200 * kMs));
  ASSERT_TRUE(TrafficMore(8)) << "the page took the last way";
  ExpectAllWell();
}

TEST_P(Contract, PageOfALostDaemonDecidesNothing) {
  Make();
  Start(kRails);
  for (const End end : {0, 1}) world_->Publish(end, {{.node = 0, .rail = 0, .state = plan::PlannedState::kFailed, .weight_permille = 0}});
  ASSERT_TRUE(TrafficUntil([&] { return Fences(0, 0) > 0; }));
  const int up = LinksUp(0, 0);
  for (const End end : {0, 1}) world_->LoseDaemon(end);
  ASSERT_TRUE(TrafficUntil([&] { return LinksUp(0, 0) > up; })) << "the dead still rule";
  ExpectAllWell();
}

}  // namespace
}  // namespace r2cc::contract
