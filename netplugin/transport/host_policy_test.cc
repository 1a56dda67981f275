#include "netplugin/transport/host_policy.h"

#include <gtest/gtest.h>

#include "netplugin/flow/tuning.h"
#include "netplugin/link/chunk_size.h"

namespace r2cc::net {
namespace {

TEST(HostPolicy, UnsetVariablesFollowTheRails) {
  Host host;
  SetPolicy({.deadline_ms = 30000, .silence_ms = 250}, &host);
  EXPECT_EQ(host.mode, StripeMode::kBalance);
  EXPECT_EQ(host.chunk_bytes, tuning::kChunkBytesBase);
  EXPECT_TRUE(host.chunks_follow_rate);
  EXPECT_EQ(host.eager_bytes, kEagerBytesMax);
  EXPECT_EQ(host.silence, 250 * kNanosPerMs);
  EXPECT_EQ(host.deadline, 30 * kNanosPerSecond);
}

TEST(HostPolicy, WithoutProtectionNothingTravelsEagerly) {
  Host host;
  SetPolicy({.mode = Mode::kOneRail, .chunk_bytes = 8192}, &host);
  EXPECT_EQ(host.mode, StripeMode::kOneRail);
  EXPECT_EQ(host.eager_bytes, 0u);
  EXPECT_EQ(host.chunk_bytes, 8192u);
  EXPECT_FALSE(host.chunks_follow_rate);
  SetPolicy({.mode = Mode::kDegradedAllReduce}, &host);
  EXPECT_EQ(host.mode, StripeMode::kBalance);
}

}  // namespace
}  // namespace r2cc::net
