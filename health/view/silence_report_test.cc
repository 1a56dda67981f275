#include "health/view/silence_report.h"

#include <gtest/gtest.h>

namespace r2cc::health {
namespace {

constexpr Nanos kMs = kNanosPerMs;

TEST(SilenceReportTest, ALastingSharperVerdictIsReportedAgainOnce) {
  SilenceReport report;
  report.Report(FaultKind::kRail, 100 * kMs);
  EXPECT_FALSE(report.Sharpened(true, FaultKind::kRail, 1500 * kMs)) << "no news";
  EXPECT_FALSE(report.Sharpened(true, FaultKind::kPort, 1600 * kMs)) << "not yet";
  EXPECT_FALSE(report.Sharpened(true, FaultKind::kPort, 2599 * kMs));
  EXPECT_TRUE(report.Sharpened(true, FaultKind::kPort, 2600 * kMs));
  report.Report(FaultKind::kPort, 2600 * kMs);
  EXPECT_FALSE(report.Sharpened(true, FaultKind::kPort, 9000 * kMs));
  EXPECT_FALSE(report.Sharpened(true, FaultKind::kRail, 20'000 * kMs)) << "vaguer";
}

TEST(SilenceReportTest, AMomentIsNoNews) {
  SilenceReport report;
  report.Report(FaultKind::kRail, 0);
  EXPECT_FALSE(report.Sharpened(true, FaultKind::kPort, 1000 * kMs));
  EXPECT_FALSE(report.Sharpened(false, FaultKind::kPort, 1900 * kMs)) << "it answers";
  EXPECT_FALSE(report.Sharpened(true, FaultKind::kPort, 2100 * kMs));
  EXPECT_FALSE(report.Sharpened(true, FaultKind::kPeers, 3000 * kMs)) << "something else";
  EXPECT_FALSE(report.Sharpened(true, FaultKind::kPort, 3900 * kMs));
}

}  // namespace
}  // namespace r2cc::health
