#include "netplugin/transport/flow_closer.h"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

#include "netplugin/flow/tuning.h"

namespace r2cc::net {
namespace {

class FlowCloserTest : public testing::Test {
 protected:
  std::vector<std::string> lines_;
  FlowCloser closer_{[this](LogLevel, const std::string& line) { lines_.push_back(line); }};
};

TEST_F(FlowCloserTest, AFlowThatNothingHoldsIsClosedAtOnce) {
  FlowCloser::Close close;
  closer_.Begin(
      &close, [] { return false; }, 0);
  EXPECT_TRUE(closer_.empty());
  closer_.Await(&close);
}

// The thread that looks goes on, whatever one close waits for.
TEST_F(FlowCloserTest, OneWaitsAndNobodyElseDoes) {
  bool held = true;
  FlowCloser::Close slow, quick;
  closer_.Begin(
      &slow, [&held] { return held; }, 0);
  auto waits = std::async(std::launch::async, [&] { closer_.Await(&slow); });
  closer_.Begin(
      &quick, [] { return false; }, 0);
  closer_.Await(&quick);
  closer_.Look(kNanosPerSecond);
  EXPECT_FALSE(closer_.empty());
  EXPECT_NE(waits.wait_for(std::chrono::milliseconds(1)), std::future_status::ready);
  held = false;
  closer_.Look(2 * kNanosPerSecond);
  waits.get();
  EXPECT_TRUE(closer_.empty());
  EXPECT_TRUE(lines_.empty());
}

TEST_F(FlowCloserTest, ADeviceThatNeverEndsItIsLoggedAndDoesNotEndTheProcess) {
  FlowCloser::Close close;
  closer_.Begin(
      &close, [] { return true; }, 0);
  for (Nanos now = 0; now <= 65 * kNanosPerSecond; now += kNanosPerSecond) closer_.Look(now);
  EXPECT_EQ(lines_.size(), 65 * kNanosPerSecond / tuning::kWarnAgainAfter);
  // With the process its queue pairs end.
  closer_.End();
  closer_.Await(&close);
  FlowCloser::Close later;
  closer_.Begin(
      &later, [] { return true; }, 0);
  closer_.Await(&later);
}

}  // namespace
}  // namespace r2cc::net
