#include "daemon/metrics/counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace r2cc::daemon {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(GrowingSumsTest, SourcesComeGoAndBeginAgain) {
  GrowingSums sums;
  EXPECT_EQ(sums.Of("rail0"), 0u);
  sums.Update({{"rail0", {{"a", 10}, {"b", 5}}}});
  EXPECT_EQ(sums.Of("rail0"), 15u);
  sums.Update({{"rail0", {{"a", 12}, {"b", 5}}}, {"rail1", {{"a", 1}}}});
  EXPECT_EQ(sums.Of("rail0"), 17u);
  sums.Update({{"rail0", {{"a", 12}}}});  // b has ended, and rail1's a
  EXPECT_EQ(sums.Of("rail0"), 17u);
  EXPECT_EQ(sums.Of("rail1"), 1u);
  sums.Update({{"rail0", {{"a", 3}, {"b", 2}}}});  // both began again
  EXPECT_EQ(sums.Of("rail0"), 22u);
}

v1::Event Of(const std::string& kind) {
  v1::Event event;
  event.set_kind(kind);
  event.set_node("n0");
  return event;
}

TEST(EventCountersTest, CountsVerdictsOfTheOwnNicsAlone) {
  EventCounters counters("n0");
  for (const v1::NicState state : {v1::SUSPECT, v1::FAILED, v1::PROVING, v1::HEALTHY, v1::DRAINED, v1::DEGRADED}) {
    v1::Event event = Of("nic-state");
    event.set_nic("rail0");
    event.set_to_state(state);
    counters.Count(event);
    event.set_node("n1");
    counters.Count(event);
  }
  EXPECT_EQ(counters.VerdictsOn("rail0"), 3u);
  EXPECT_EQ(counters.VerdictsOn("rail1"), 0u);
}

TEST(EventCountersTest, CountsWhatJobsMetAndOperatorsDid) {
  EventCounters counters("n0");
  v1::Event failover = Of("failover");
  failover.set_cause("silence");
  failover.set_duration_ns(3'000'000);
  counters.Count(failover);
  counters.Count(failover);
  counters.Count(Of("job-gave-up"));
  counters.Count(Of("duplicate-node"));
  v1::Event drain = Of("operator");
  drain.mutable_audit()->set_action("drain");
  counters.Count(drain);
  drain.mutable_audit()->set_action("something\n{new}");
  counters.Count(drain);
  EXPECT_THAT(counters.failovers_by_cause(), ElementsAre(Pair("silence", 2u)));
  EXPECT_EQ(counters.failover_seconds().counts[1], 2u);  // at most 5 ms
  EXPECT_EQ(counters.job_errors(), 1u);
  EXPECT_EQ(counters.duplicate_nodes(), 1u);
  EXPECT_THAT(counters.operator_actions(), ElementsAre(Pair("drain", 1u), Pair("other", 1u)));
}

TEST(EventCountersTest, CausesAreBounded) {
  EventCounters counters("n0");
  for (int i = 0; i < 1000; ++i) {
    v1::Event failover = Of("failover");
    failover.set_cause("cause" + std::to_string(i));
    counters.Count(failover);
  }
  EXPECT_EQ(counters.failovers_by_cause().size(), 25u);
  EXPECT_EQ(counters.failovers_by_cause().at("other"), 976u);
}

}  // namespace
}  // namespace r2cc::daemon
