#include "health/evidence/evidence_log.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace r2cc::health {
namespace {

Evidence Link(const std::string& nic, bool up, Nanos when) {
  return {.observer = "n0",
          .subject = {"n0", nic},
          .kind = up ? EvidenceKind::kLinkUp : EvidenceKind::kLinkDown,
          .value = 0,
          .when = when,
          .peer = {},
          .detail = ""};
}

Evidence Rate(const std::string& nic, int64_t rate, Nanos when) {
  return {.observer = "n0", .subject = {"n0", nic}, .kind = EvidenceKind::kRate, .value = rate, .when = when, .peer = {}, .detail = ""};
}

TEST(EvidenceLog, RepeatedEvidenceIsCountedNotKeptTwice) {
  EvidenceLog log;
  log.Add(Rate("r0", 100, 1));
  log.Add(Link("r0", true, 2));
  log.Add(Rate("r0", 100, 3));
  log.Add(Rate("r0", 100, 4));
  EXPECT_EQ(log.size(), 2u);
  const auto about = log.About({"n0", "r0"}, 10);
  ASSERT_EQ(about.size(), 2u);
  EXPECT_EQ(about[1].times, 3u);
  EXPECT_EQ(about[1].first_when, 1);
  EXPECT_EQ(about[1].evidence.when, 4);
}

TEST(EvidenceLog, CountsAddUp) {
  EvidenceLog log;
  for (Nanos when = 1; when <= 10'000; ++when) {
    Evidence flips = Rate("r0", 3, when);
    flips.kind = when % 2 == 0 ? EvidenceKind::kCarrierFlips : EvidenceKind::kLinkBounces;
    flips.value = when;
    log.Add(flips);
  }
  const auto about = log.About({"n0", "r0"}, 10);
  ASSERT_EQ(about.size(), 2u) << "a cable that flaps for ever pushes nothing out";
  EXPECT_EQ(about[0].evidence.value + about[1].evidence.value, 10'000 * 10'001 / 2);
  EXPECT_EQ(about[0].times, 5'000u);
}

TEST(EvidenceLog, ASumEndsAtTheLargestNumber) {
  for (const int64_t most : {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) {
    EvidenceLog log;
    for (Nanos when = 1; when <= 3; ++when) {
      Evidence flips = Rate("r0", most, when);
      flips.kind = EvidenceKind::kCarrierFlips;
      log.Add(flips);
    }
    EXPECT_EQ(log.About({"n0", "r0"}, 1)[0].evidence.value, most);
  }
}

TEST(EvidenceLog, AChangeAndTheWayBackAreTwoEntries) {
  EvidenceLog log;
  log.Add(Link("r0", true, 1));
  log.Add(Link("r0", false, 2));
  log.Add(Link("r0", true, 3));
  const auto about = log.About({"n0", "r0"}, 10);
  ASSERT_EQ(about.size(), 3u);
  EXPECT_EQ(about[0].evidence.when, 3);
  EXPECT_EQ(about[1].evidence.kind, EvidenceKind::kLinkDown);
}

TEST(EvidenceLog, ObserversSubjectsAndPeersDoNotMix) {
  EvidenceLog log;
  Evidence first = Link("r0", true, 1);
  log.Add(first);
  first.observer = "n1";
  log.Add(first);
  first.peer = {"n2", "r0"};
  log.Add(first);
  log.Add(Link("r1", true, 1));
  EXPECT_EQ(log.size(), 4u);
  EXPECT_EQ(log.About({"n0", "r0"}, 10).size(), 3u);
  EXPECT_EQ(log.About({"n0", "r0"}, 2).size(), 2u);
  EXPECT_TRUE(log.About({"n1", "r0"}, 10).empty());
}

// Goal: the log stays within its limit and merges correctly after entries were dropped. Method: compare with what must be left.
TEST(EvidenceLog, TheOldestGoesWhenItIsFull) {
  EvidenceLog log(4);
  for (int i = 0; i < 10; ++i) log.Add(Rate("r0", i, i));
  EXPECT_EQ(log.size(), 4u);
  EXPECT_EQ(log.forgotten(), 6u);
  const auto about = log.About({"n0", "r0"}, 10);
  ASSERT_EQ(about.size(), 4u);
  EXPECT_EQ(about.front().evidence.value, 9);
  EXPECT_EQ(about.back().evidence.value, 6);
  log.Add(Rate("r0", 9, 50));
  EXPECT_EQ(log.About({"n0", "r0"}, 1).front().times, 2u);
  EXPECT_EQ(log.size(), 4u);
  // A series whose only entry was dropped starts again.
  log.Add(Link("r1", true, 60));
  for (int i = 0; i < 4; ++i) log.Add(Rate("r0", 100 + i, 70));
  EXPECT_TRUE(log.About({"n0", "r1"}, 1).empty());
  log.Add(Link("r1", true, 80));
  EXPECT_EQ(log.About({"n0", "r1"}, 1).front().times, 1u);
}

TEST(EvidenceLog, EveryKindHasAName) {
  for (int kind = 0; kind < kEvidenceKinds; ++kind) EXPECT_STRNE(EvidenceKindName(static_cast<EvidenceKind>(kind)), "unknown") << kind;
}

}  // namespace
}  // namespace r2cc::health
