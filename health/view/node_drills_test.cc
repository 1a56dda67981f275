// Drills, which end by themselves, and drains for single jobs.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "health/view/node_health.h"

namespace r2cc::health {
namespace {

constexpr Nanos kSecond = kNanosPerSecond;

class DrillTest : public testing::Test {
 protected:
  DrillTest() { See(EvidenceKind::kLinkUp); }

  std::unique_ptr<NodeHealth> Make(const OperatorSettings& settings = {}) {
    return std::make_unique<NodeHealth>("n0", std::vector<NicIdentity>{{.name = "r1", .interface = "eth1"}}, NodePolicy(), settings, now_);
  }
  // "HEALTHY>FAILED (link down); ..."
  std::string See(EvidenceKind kind, int64_t value = 0, const std::string& detail = "") {
    return TextOf(health_->Handle({"n0", {"n0", "r1"}, kind, value, now_, {}, detail}));
  }
  std::string Pass(Nanos by) {
    now_ += by;
    return TextOf(health_->Tick(now_));
  }
  static std::string TextOf(const std::vector<NicChange>& changes) {
    std::string changes_text;
    for (const auto& [nic, transition, when] : changes)
      changes_text += std::string(NicStateName(transition.from)) + ">" + NicStateName(transition.to) + " (" + transition.reason + "); ";
    return changes_text;
  }
  const NicStatus& Nic() { return health_->Snapshot().nics[0]; }

  Nanos now_ = kSecond;
  std::unique_ptr<NodeHealth> health_ = Make();
};

TEST_F(DrillTest, ADrillEndsByItself) {
  const Nanos begin = now_;
  EXPECT_EQ(See(EvidenceKind::kDrillFail, 60 * kSecond), "HEALTHY>FAILED (drill: fail-nic); ");
  EXPECT_EQ(Nic().drill_until, begin + 60 * kSecond);
  Pass(50 * kSecond);
  EXPECT_EQ(See(EvidenceKind::kDrillFail, 20 * kSecond), "") << "repeated";
  EXPECT_EQ(Nic().drill_until, begin + 70 * kSecond);
  Pass(19 * kSecond);
  EXPECT_EQ(Nic().state, NicState::kFailed);
  EXPECT_TRUE(health_->TakeEndedDrills().empty());
  EXPECT_EQ(Pass(kSecond), "FAILED>PROVING (drill over: proving for 300 ms); ");
  EXPECT_EQ(health_->TakeEndedDrills(), std::vector<std::string>{"r1"});
  EXPECT_TRUE(health_->TakeEndedDrills().empty());
  EXPECT_EQ(Nic().drill_until, 0);
  EXPECT_FALSE(Nic().drill_failed);
  EXPECT_TRUE(health_->settings().empty());
}

TEST_F(DrillTest, ADrillThatIsTakenBackDoesNotEndTwice) {
  See(EvidenceKind::kDrillFail, 10 * kSecond);
  EXPECT_EQ(See(EvidenceKind::kDrillRestore), "FAILED>PROVING (drill over: proving for 300 ms); ");
  Pass(20 * kSecond);
  EXPECT_TRUE(health_->TakeEndedDrills().empty());
}

TEST_F(DrillTest, ADrillsEndDoesNotHideADeadLink) {
  See(EvidenceKind::kDrillFail, 10 * kSecond);
  See(EvidenceKind::kLinkDown, 0, "link down");
  EXPECT_EQ(Pass(10 * kSecond), "");
  EXPECT_EQ(Nic().state, NicState::kFailed);
  EXPECT_EQ(Nic().reason, "link down");
  EXPECT_EQ(health_->TakeEndedDrills(), std::vector<std::string>{"r1"});
}

TEST_F(DrillTest, ADrillHasALeastAndAMostLength) {
  See(EvidenceKind::kDrillFail, 1);
  EXPECT_EQ(Nic().drill_until, now_ + kDrillMin);
  See(EvidenceKind::kDrillFail, INT64_MAX);
  EXPECT_EQ(Nic().drill_until, now_ + kDrillMax);
  const OperatorSettings kept = {{"r1", {false, true, 1000, now_ + 5 * kDrillMax}}};
  health_ = Make(kept);
  EXPECT_EQ(Nic().drill_until, now_ + kDrillMax);
}

TEST_F(DrillTest, ADrainForOneJobIsNoStateAndIsKept) {
  const uint64_t revision = health_->revision();
  EXPECT_EQ(See(EvidenceKind::kDrainJob, 0, "train"), "") << "the NIC goes on for others";
  EXPECT_EQ(See(EvidenceKind::kDrainJob, 0, "eval"), "");
  EXPECT_GT(health_->revision(), revision);
  EXPECT_EQ(Nic().state, NicState::kHealthy);
  EXPECT_EQ(Nic().drained_jobs, (std::vector<std::string>{"eval", "train"}));
  const OperatorSettings settings = health_->settings();
  EXPECT_EQ(settings.at("r1").drained_jobs, (std::set<std::string>{"eval", "train"}));
  health_ = Make(settings);
  EXPECT_EQ(Nic().drained_jobs, (std::vector<std::string>{"eval", "train"}));
  See(EvidenceKind::kUndrainJob, 0, "train");
  See(EvidenceKind::kUndrainJob, 0, "nobody");
  EXPECT_EQ(Nic().drained_jobs, std::vector<std::string>{"eval"});
  for (int i = 0; i < 20; ++i) See(EvidenceKind::kDrainJob, 0, "job" + std::to_string(i));
  EXPECT_EQ(Nic().drained_jobs.size(), kDrainedJobsMax);
}

}  // namespace
}  // namespace r2cc::health
