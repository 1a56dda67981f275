#include "daemon/rails/large_watch.h"

#include <gtest/gtest.h>

namespace r2cc::daemon {
namespace {

using health::FaultKind;
using health::NicKey;

constexpr Nanos kMs = kNanosPerMs;
const NicKey kNic = {"n0", "rail1"};
const NicKey kPeer = {"n1", "rail1"};

LargeWatch::Seen Lost(FaultKind kind, size_t nodes = 2) {
  LargeWatch::Seen seen;
  seen.lost = {kPeer};
  seen.nodes = nodes;
  seen.fault.kind = kind;
  seen.fault.peers = {kPeer};
  seen.loss = {9000, 1500, health::LargeLoss::Way::kEither};
  return seen;
}

TEST(LargeWatch, ThePathIsForbiddenFirstAndTheFaultReportedWhenItsPlaceIsClear) {
  LargeWatch watch;
  const LargeWatch::Seen seen = Lost(FaultKind::kInconclusive);
  LargeWatch::Verdict verdict = watch.Judge(kNic, seen, kMs);
  EXPECT_TRUE(verdict.ask);
  EXPECT_TRUE(verdict.broken.empty());
  verdict = watch.Judge(kNic, seen, kMs + kLargeHold);
  EXPECT_EQ(verdict.broken, seen.lost);
  EXPECT_FALSE(verdict.report.has_value());
  verdict = watch.Judge(kNic, seen, kMs + kLargeSettle);
  EXPECT_EQ(verdict.report, "packets over 1500 bytes are lost between n0/rail1 and n1/rail1; small ones pass");
  EXPECT_TRUE(watch.IsReported("rail1"));
  EXPECT_FALSE(watch.Judge(kNic, seen, 10'000 * kMs).report.has_value()) << "once";
  verdict = watch.Judge(kNic, {}, 10'001 * kMs);
  EXPECT_EQ(verdict.report, "");
  EXPECT_TRUE(verdict.broken.empty());
  EXPECT_TRUE(watch.empty());
}

TEST(LargeWatch, NobodyIsWaitedForIfNobodyKnowsMore) {
  for (const auto& [kind, nodes] : {std::pair(FaultKind::kInconclusive, 1), {FaultKind::kPort, 2}, {FaultKind::kCable, 1}}) {
    LargeWatch watch;
    watch.Judge(kNic, Lost(kind, nodes), kMs);
    EXPECT_TRUE(watch.Judge(kNic, Lost(kind, nodes), kMs + kLargeHold).report.has_value());
  }
}

TEST(LargeWatch, TheOtherEndsFaultIsNoneOfThisNic) {
  LargeWatch watch;
  watch.Judge(kNic, Lost(FaultKind::kPeers), kMs);
  for (Nanos now = kMs; now < 5000 * kMs; now += 100 * kMs) {
    const LargeWatch::Verdict verdict = watch.Judge(kNic, Lost(FaultKind::kPeers), now);
    EXPECT_FALSE(verdict.report.has_value());
    EXPECT_EQ(verdict.broken.empty(), now - kMs < kLargeHold);
  }
  EXPECT_FALSE(watch.Judge(kNic, {}, 6000 * kMs).report.has_value());
}

TEST(LargeWatch, ASharperVerdictIsReportedOnceASecond) {
  LargeWatch watch;
  watch.Judge(kNic, Lost(FaultKind::kInconclusive), kMs);
  ASSERT_TRUE(watch.Judge(kNic, Lost(FaultKind::kInconclusive), kMs + kLargeSettle).report.has_value());
  EXPECT_FALSE(watch.Judge(kNic, Lost(FaultKind::kPeers), 2 * kMs + kLargeSettle).report.has_value());
  // For a moment it looked otherwise.
  EXPECT_FALSE(watch.Judge(kNic, Lost(FaultKind::kInconclusive), 1000 * kMs + kLargeSettle).report.has_value());
  EXPECT_FALSE(watch.Judge(kNic, Lost(FaultKind::kPeers), 1100 * kMs + kLargeSettle).report.has_value());
  EXPECT_FALSE(watch.Judge(kNic, Lost(FaultKind::kPeers), 1200 * kMs + kLargeSettle).report.has_value());
  EXPECT_EQ(watch.Judge(kNic, Lost(FaultKind::kPeers), 1100 * kMs + kLargeSettle + kLargeAgain).report, "");
}

TEST(LargeWatch, ALinkThatGoesDownExplainsAll) {
  LargeWatch watch;
  watch.Judge(kNic, Lost(FaultKind::kPort), kMs);
  watch.Judge(kNic, Lost(FaultKind::kPort), kMs + kLargeHold);
  ASSERT_TRUE(watch.IsReported("rail1"));
  watch.Forget("rail1");
  EXPECT_FALSE(watch.Judge(kNic, {}, 2000 * kMs).report.has_value());
}

}  // namespace
}  // namespace r2cc::daemon
