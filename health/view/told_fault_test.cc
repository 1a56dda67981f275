#include "health/view/told_fault.h"

#include <gtest/gtest.h>

namespace r2cc::health {
namespace {

constexpr Nanos kMs = kNanosPerMs;

TEST(ToldFaultTest, WhatStaysSharperIsToldAgainOnce) {
  ToldFault told;
  told.Tell(FaultKind::kRail, 100 * kMs);
  EXPECT_FALSE(told.Sharpened(true, FaultKind::kRail, 1500 * kMs)) << "no news";
  EXPECT_FALSE(told.Sharpened(true, FaultKind::kPort, 1600 * kMs)) << "not yet";
  EXPECT_FALSE(told.Sharpened(true, FaultKind::kPort, 2599 * kMs));
  EXPECT_TRUE(told.Sharpened(true, FaultKind::kPort, 2600 * kMs));
  told.Tell(FaultKind::kPort, 2600 * kMs);
  EXPECT_FALSE(told.Sharpened(true, FaultKind::kPort, 9000 * kMs));
  EXPECT_FALSE(told.Sharpened(true, FaultKind::kRail, 20'000 * kMs)) << "vaguer";
}

TEST(ToldFaultTest, AMomentIsNoNews) {
  ToldFault told;
  told.Tell(FaultKind::kRail, 0);
  EXPECT_FALSE(told.Sharpened(true, FaultKind::kPort, 1000 * kMs));
  EXPECT_FALSE(told.Sharpened(false, FaultKind::kPort, 1900 * kMs)) << "it answers";
  EXPECT_FALSE(told.Sharpened(true, FaultKind::kPort, 2100 * kMs));
  EXPECT_FALSE(told.Sharpened(true, FaultKind::kPeers, 3000 * kMs)) << "something else";
  EXPECT_FALSE(told.Sharpened(true, FaultKind::kPort, 3900 * kMs));
}

}  // namespace
}  // namespace r2cc::health
