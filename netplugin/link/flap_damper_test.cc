#include "netplugin/link/flap_damper.h"

#include <gtest/gtest.h>

#include "netplugin/flow/tuning.h"

namespace r2cc::net {
namespace {

TEST(FlapDamper, ALossOrTwoCostNothing) {
  FlapDamper damper;
  EXPECT_EQ(damper.Hold(kNanosPerSecond), 0);
  damper.Lost(kNanosPerSecond);
  EXPECT_EQ(damper.Hold(kNanosPerSecond), 0);
  damper.Lost(2 * kNanosPerSecond);
  EXPECT_EQ(damper.Hold(2 * kNanosPerSecond), 0);
}

TEST(FlapDamper, AFlappingRailIsHeldOffLongerEachTimeButNotForEver) {
  FlapDamper damper;
  Nanos now = kNanosPerSecond, before = 0;
  for (int i = 0; i < 20; ++i) {
    damper.Lost(now);
    EXPECT_GE(damper.Hold(now), before);
    before = damper.Hold(now);
    now += kNanosPerSecond / 2;
  }
  EXPECT_EQ(before, tuning::kFlapHoldMost);
}

TEST(FlapDamper, TimeForgives) {
  FlapDamper damper;
  for (int i = 0; i < 20; ++i) damper.Lost(kNanosPerSecond);
  EXPECT_GT(damper.Hold(2 * kNanosPerSecond), 0);
  EXPECT_EQ(damper.Hold(kNanosPerSecond + 4 * tuning::kFlapHalfLife), 0);
}

}  // namespace
}  // namespace r2cc::net
