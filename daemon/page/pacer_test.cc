#include "daemon/page/pacer.h"

#include <gtest/gtest.h>

namespace r2cc::daemon {
namespace {

constexpr Nanos kNow = 1000 * kNanosPerSecond;

health::NodeState State() {
  health::NodeState state;
  state.node = "n0";
  state.nics.emplace_back().identity.name = "r0";
  return state;
}

TEST(Pacer, ChangesOfTheNodeOrItsNicsArePublishedAtOnce) {
  Pacer pacer;
  pacer.Published(kNow);
  health::NodeState next = State();
  next.status = health::NodeStatus::kDegraded;
  EXPECT_EQ(pacer.PublishAt(State(), next, false), 0);
  next = State();
  next.nics[0].port_dead = true;
  EXPECT_EQ(pacer.PublishAt(State(), next, false), 0);
  next = State();
  next.probe_nonce = 1;
  EXPECT_EQ(pacer.PublishAt(State(), next, false), 0);
}

TEST(Pacer, WhichPairsAnswerIsPublishedNowAndThenAndSilenceSooner) {
  Pacer pacer;
  pacer.Published(kNow);
  health::NodeState answers = State();
  answers.pairs = {{"r0", {"n1", "r0"}, false}};
  health::NodeState silent = State();
  silent.pairs = {{"r0", {"n1", "r0"}, true}};
  EXPECT_EQ(pacer.PublishAt(State(), answers, false), kNow + kKeepAliveInterval);
  EXPECT_EQ(pacer.PublishAt(State(), answers, true), kNow + kSilenceInterval);
  EXPECT_EQ(pacer.PublishAt(State(), silent, false), kNow + kSilenceInterval);
  EXPECT_EQ(pacer.PublishAt(silent, State(), false), kNow + kSilenceInterval) << "its end is as urgent";
}

TEST(Pacer, PlansOfALargeClusterKeepADistance) {
  Pacer pacer;
  pacer.Planned(kNow);
  EXPECT_EQ(pacer.PlanAt(0), kNow);
  EXPECT_EQ(pacer.PlanAt(kPlanAtOnceNodes), kNow);
  EXPECT_EQ(pacer.PlanAt(kPlanAtOnceNodes + 1), kNow + kPlanIntervalPerNode);
  EXPECT_EQ(pacer.PlanAt(kPlanAtOnceNodes + 960), kNow + 960 * kPlanIntervalPerNode);
}

TEST(Pacer, OnlyTheEarliestTimerCounts) {
  Pacer pacer;
  EXPECT_TRUE(pacer.Wait(kNow + 50));
  EXPECT_FALSE(pacer.Wait(kNow + 50));
  EXPECT_FALSE(pacer.Wait(kNow + 60));
  EXPECT_TRUE(pacer.Wait(kNow + 40));
  EXPECT_TRUE(pacer.Rang(kNow + 40));
  EXPECT_FALSE(pacer.Rang(kNow + 50)) << "it was replaced";
  EXPECT_TRUE(pacer.Wait(kNow + 60)) << "no timer is set any more";
  EXPECT_TRUE(pacer.Rang(kNow + 60));
}

}  // namespace
}  // namespace r2cc::daemon
