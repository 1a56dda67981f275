#include "base/core/flap_level.h"

#include <gtest/gtest.h>

namespace r2cc {
namespace {

constexpr Nanos kDecay = 60 * kNanosPerSecond;
constexpr Nanos kShortest = 300 * kNanosPerMs;
constexpr Nanos kLongest = 30 * kNanosPerSecond;

TEST(FlapLevel, TheProofDoublesWithEachFailureUpToItsMaximum) {
  FlapLevel flaps(kDecay, 32);
  EXPECT_EQ(flaps.ProofTime(kShortest, kLongest), kShortest);
  Nanos expected = kShortest;
  for (int failure = 1; failure <= 40; ++failure) {
    flaps.Count(failure * kNanosPerSecond);
    EXPECT_EQ(flaps.ProofTime(kShortest, kLongest), expected) << failure;
    expected = expected * 2 < kLongest ? expected * 2 : kLongest;
  }
  EXPECT_EQ(flaps.level(), 32u);
}

TEST(FlapLevel, OneIsForgivenForEachDecayWithoutAFailure) {
  FlapLevel flaps(kDecay, 32);
  Nanos now = 1'000'000 * kNanosPerSecond;  // a first failure late in life is a first failure
  flaps.Count(now);
  EXPECT_EQ(flaps.level(), 1u);
  for (int failure = 0; failure < 4; ++failure) flaps.Count(++now);
  EXPECT_EQ(flaps.level(), 5u);
  flaps.Count(now += 2 * kDecay);
  EXPECT_EQ(flaps.level(), 4u) << "two are forgiven, and one is new";
  flaps.Count(now += kDecay - 1);
  EXPECT_EQ(flaps.level(), 5u) << "nothing is forgiven before a whole decay has passed";
  flaps.Count(now += 1000 * kDecay);
  EXPECT_EQ(flaps.level(), 1u);
}

TEST(FlapLevel, NoMoreIsRememberedThanTheMaximum) {
  FlapLevel flaps(kDecay, 16);
  for (int failure = 0; failure < 100; ++failure) flaps.Count(kDecay + failure);
  EXPECT_EQ(flaps.level(), 16u);
  flaps.Count(17 * kDecay + 200);
  EXPECT_EQ(flaps.level(), 1u);
}

}  // namespace
}  // namespace r2cc
