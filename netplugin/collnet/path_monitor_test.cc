#include "netplugin/collnet/path_monitor.h"

#include <gtest/gtest.h>

#include "netplugin/flow/tuning.h"

namespace r2cc::collnet {
namespace {

constexpr Nanos kStep = 100 * kNanosPerMs;

// Observes that until what counts for member 1 changes, and gives for how long.
Nanos TimeUntilChange(PathMonitor* monitor, bool up, Nanos* now) {
  const Nanos began = *now;
  while (!monitor->Observe(1, up, true, *now)) {
    if (*now - began > 100 * kNanosPerSecond) return -1;
    *now += kStep;
  }
  return *now - began;
}

TEST(PathMonitorTest, IsLostSoonAndBackLate) {
  PathMonitor monitor(3);
  Nanos now = 0;
  monitor.Observe(1, true, true, now);
  EXPECT_EQ(TimeUntilChange(&monitor, false, &now), net::tuning::kPathLostAfter);
  EXPECT_EQ(monitor.Unreachable(), std::vector<uint32_t>{1});
  EXPECT_FALSE(monitor.HasPath(1));
  EXPECT_TRUE(monitor.HasPath(2));
  EXPECT_EQ(TimeUntilChange(&monitor, true, &now), net::tuning::kPathBackAfter);
  EXPECT_TRUE(monitor.Unreachable().empty());
}

TEST(PathMonitorTest, ALossThatPassesIsNone) {
  PathMonitor monitor(2);
  Nanos now = 0;
  for (int i = 0; i < 100; ++i) {
    for (Nanos lost = 0; lost < net::tuning::kPathLostAfter; lost += kStep) ASSERT_FALSE(monitor.Observe(1, false, true, now += kStep - 1));
    ASSERT_FALSE(monitor.Observe(1, true, true, now += kStep));
  }
}

TEST(PathMonitorTest, TimeInWhichNobodyObservesDoesNotCount) {
  PathMonitor monitor(2);
  monitor.Observe(1, true, true, 0);
  Nanos now = 0;
  int observations = 0;
  do ++observations, now += 3600 * kNanosPerSecond;
  while (!monitor.Observe(1, false, true, now));
  EXPECT_EQ(observations, net::tuning::kPathLostAfter / (2 * net::tuning::kObserveEvery));
}

// A process that starts late makes no group wait for longer.
TEST(PathMonitorTest, APathThatIsBackBeforeItsUseCountsAtOnce) {
  PathMonitor monitor(2);
  Nanos now = 0;
  monitor.Observe(1, false, false, now);
  EXPECT_EQ(TimeUntilChange(&monitor, false, &now), net::tuning::kPathLostAfter);
  EXPECT_TRUE(monitor.Observe(1, true, false, now += kStep));
  EXPECT_TRUE(monitor.HasPath(1));
}

}  // namespace
}  // namespace r2cc::collnet
