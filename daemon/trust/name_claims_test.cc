#include "daemon/trust/name_claims.h"

#include <gtest/gtest.h>

namespace r2cc::daemon {
namespace {

constexpr Nanos kMs = kNanosPerMs;

TEST(NameClaimsTest, WhoSpokeFirstKeepsTheNameWhileHeSpeaks) {
  NameClaims claims;
  const NameClaims::Speaker first{1, "10.0.0.1:5"};
  const NameClaims::Speaker second{2, "10.0.0.2:6"};
  for (Nanos now = 0; now < 10'000 * kMs; now += 500 * kMs) {
    EXPECT_TRUE(claims.Speak("n1", first, now).holds);
    EXPECT_FALSE(claims.Speak("n1", second, now + 1).holds);
  }
  EXPECT_TRUE(claims.Speak("n2", second, 0).holds) << "another name";
  EXPECT_FALSE(claims.Speak("n1", second, 9'500 * kMs + NameClaims::kHolds - 1).holds);
  EXPECT_TRUE(claims.Speak("n1", second, 9'500 * kMs + NameClaims::kHolds).holds);
  EXPECT_FALSE(claims.Speak("n1", first, 9'500 * kMs + NameClaims::kHolds + 1).holds);
}

TEST(NameClaimsTest, TwoThatLiveAreToldOnce) {
  NameClaims claims;
  const NameClaims::Speaker first{1, "10.0.0.1:5"};
  const NameClaims::Speaker second{2, "10.0.0.2:6"};
  EXPECT_FALSE(claims.Speak("n1", first, 1).other.has_value());
  EXPECT_FALSE(claims.Speak("n1", second, 2).other.has_value());
  const auto told = claims.Speak("n1", first, 3).other;
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->address, "10.0.0.2:6");
  claims.Speak("n1", second, 4);
  EXPECT_FALSE(claims.Speak("n1", first, 5).other.has_value());
  claims.Speak("n1", second, NameClaims::kToldFor + 3);
  EXPECT_TRUE(claims.Speak("n1", second, NameClaims::kToldFor + 4).holds);
}

TEST(NameClaimsTest, TwoThatSpeakSeldomAreToldToo) {
  NameClaims claims;
  const NameClaims::Speaker first{1, "10.0.0.1:5"};
  const NameClaims::Speaker second{2, "10.0.0.2:6"};
  EXPECT_TRUE(claims.Speak("n1", first, 0).holds);
  EXPECT_TRUE(claims.Speak("n1", second, 10'000 * kMs).holds);
  const auto claim = claims.Speak("n1", first, 20'000 * kMs);
  ASSERT_TRUE(claim.other.has_value()) << "the one before it, in the store, wrote again";
  EXPECT_EQ(claim.other->address, second.address);
}

TEST(NameClaimsTest, ARestartIsNoSecondDaemon) {
  NameClaims claims;
  claims.Speak("n1", {1, "10.0.0.1:5"}, 0);
  Nanos now = 100 * kMs;
  NameClaims::Claim claim;
  for (; !claim.holds; now += 500 * kMs) claim = claims.Speak("n1", {2, "10.0.0.1:6"}, now);
  EXPECT_LE(now, NameClaims::kHolds + 1000 * kMs);
  for (int i = 0; i < 10; ++i, now += 500 * kMs) {
    claim = claims.Speak("n1", {2, "10.0.0.1:6"}, now);
    EXPECT_TRUE(claim.holds);
    EXPECT_FALSE(claim.other.has_value());
  }
}

}  // namespace
}  // namespace r2cc::daemon
