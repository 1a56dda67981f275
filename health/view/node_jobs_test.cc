// Reports of jobs and peers about NICs: slow rails and links that were given up.
#include <gtest/gtest.h>

#include <string>

#include "health/view/node_health_rig.h"

namespace r2cc::health {
namespace {

TEST_F(NodeHealthTest, ASlowRailDegradesWhileItIsReported) {
  BothUp();
  EXPECT_EQ(See(EvidenceKind::kJobSlow, "r0", 700, "train to n1/r0", {"n1", "r0"}), "");
  EXPECT_EQ(See(EvidenceKind::kJobSlow, "r0", 250, "train to n1/r0", {"n1", "r0"}),
            "r0 HEALTHY>DEGRADED (moves 25% of the best rail (train to n1/r0)); ");
  EXPECT_EQ(Nic("r0").share_permille, 250);
  EXPECT_EQ(Nic("r1").share_permille, 1000);
  EXPECT_EQ(health_->Snapshot().status, NodeStatus::kDegraded);
  // Again and again, a little better or worse: no news.
  const uint64_t revision = health_->revision();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(Pass(kSecond), "");
    EXPECT_EQ(See(EvidenceKind::kJobSlow, "r0", 200 + i % 3 * 50, "train to n1/r0", {"n1", "r0"}), "");
  }
  EXPECT_EQ(health_->revision(), revision);
  EXPECT_EQ(See(EvidenceKind::kJobSlow, "r0", 800, "train to n1/r0", {"n1", "r0"}), "");
  EXPECT_EQ(Nic("r0").share_permille, 800) << "better, but not yet well";
  EXPECT_EQ(Nic("r0").state, NicState::kDegraded);
  // It stops without a report: the job may have ended.
  EXPECT_EQ(health_->next_tick(), now_ + 5 * kSecond);
  EXPECT_EQ(Pass(5 * kSecond), "r0 DEGRADED>HEALTHY (link up); ");
  EXPECT_EQ(Nic("r0").share_permille, 1000);
}

TEST_F(NodeHealthTest, ARailThatIsALittleSlowMustStaySo) {
  BothUp();
  const auto half = [this] { return See(EvidenceKind::kJobSlow, "r0", 550, "train", {"n1", "r0"}); };
  for (int second = 0; second < 3; ++second) {
    EXPECT_EQ(half(), "") << second;
    EXPECT_EQ(Pass(kSecond), "") << second;
  }
  EXPECT_EQ(Nic("r0").share_permille, 1000);
  // For a moment it was as quick as the others: all begins again.
  See(EvidenceKind::kJobSteady, "r0", 1000, "train", {"n1", "r0"});
  for (int second = 0; second < 3; ++second) {
    EXPECT_EQ(half(), "") << second;
    EXPECT_EQ(Pass(kSecond), "") << second;
  }
  EXPECT_EQ(half(), "r0 HEALTHY>DEGRADED (moves 55% of the best rail (train)); ");
  EXPECT_EQ(Nic("r0").share_permille, 550);
  EXPECT_EQ(Pass(5 * kSecond), "r0 DEGRADED>HEALTHY (link up); ");
}

// If several users have jobs, one of them could take half of a NIC from all.
TEST_F(NodeHealthTest, OneUsersReportCapsAnothersJobsOnlyIfThatOneAgrees) {
  BothUp();
  Evidence slow{"n0", {"n0", "r0"}, EvidenceKind::kJobSlow, 250, now_, {"n1", "r0"}, "train"};
  slow.uid = 1000;
  slow.only_user = false;
  TextOf(health_->Handle(slow));
  EXPECT_EQ(Nic("r0").state, NicState::kDegraded) << "people see it";
  EXPECT_EQ(Nic("r0").share_permille, 1000);
  slow.peer = {"n2", "r0"};
  TextOf(health_->Handle(slow));
  EXPECT_EQ(Nic("r0").share_permille, 1000) << "another link of the same user";
  slow.uid = 1001;
  slow.value = 390;
  TextOf(health_->Handle(slow));
  EXPECT_EQ(Nic("r0").share_permille, 390) << "the least that both report";
  Pass(6 * kSecond);
  EXPECT_EQ(Nic("r0").state, NicState::kHealthy);
  slow.only_user = true;
  TextOf(health_->Handle(slow));
  EXPECT_EQ(Nic("r0").share_permille, 390) << "nobody else has jobs here";
}

TEST_F(NodeHealthTest, ASteadyRailIsBelievedAfterAMoment) {
  BothUp();
  See(EvidenceKind::kJobSlow, "r0", 100, "train", {"n1", "r0"});
  EXPECT_EQ(See(EvidenceKind::kJobSteady, "r0", 1000, "train", {"n1", "r0"}), "");
  EXPECT_EQ(Pass(kSecond), "");
  EXPECT_EQ(See(EvidenceKind::kJobSlow, "r0", 100, "train", {"n1", "r0"}), "") << "inconclusive: no flicker";
  EXPECT_EQ(Pass(4 * kSecond), "");
  EXPECT_EQ(See(EvidenceKind::kJobSlow, "r0", 900, "train", {"n1", "r0"}), "") << "as good as steady";
  EXPECT_EQ(Pass(kSecond), "r0 DEGRADED>HEALTHY (link up); ");
  EXPECT_EQ(See(EvidenceKind::kJobSteady, "r0", 1000, "train", {"n1", "r0"}), "");
  EXPECT_EQ(health_->next_tick(), NicMachine::kNever);
}

TEST_F(NodeHealthTest, TheSlowestReportCountsAndManyAreBounded) {
  BothUp();
  See(EvidenceKind::kJobSlow, "r0", 350, "train to n1/r0", {"n1", "r0"});
  See(EvidenceKind::kJobSlow, "r0", 300, "train to n2/r0", {"n2", "r0"});
  EXPECT_EQ(Nic("r0").reason, "moves 30% of the best rail (train to n2/r0, and 1 more)");
  See(EvidenceKind::kJobSteady, "r0", 1000, "train to n2/r0", {"n2", "r0"});
  Pass(2 * kSecond);
  EXPECT_EQ(Nic("r0").reason, "moves 35% of the best rail (train to n1/r0)");
  for (int i = 0; i < 1000; ++i) See(EvidenceKind::kJobSlow, "r0", 0, "train", {"n1", "r" + std::to_string(i)});
  EXPECT_EQ(Nic("r0").state, NicState::kDegraded) << "however many report it";
  EXPECT_EQ(Nic("r0").reason, "moves 0% of the best rail (train, and 256 more)");
  EXPECT_EQ(See(EvidenceKind::kJobSlow, "r0", INT64_MIN, "train", {"n1", "r0"}), "");
  EXPECT_EQ(Pass(5 * kSecond), "r0 DEGRADED>HEALTHY (link up); ");
}

TEST_F(NodeHealthTest, ADeadNicOrPeerExplainsASlowRail) {
  BothUp();
  SeePeer(EvidenceKind::kPeerNicFailed, {"n1", "r0"});
  EXPECT_EQ(See(EvidenceKind::kJobSlow, "r0", 100, "train", {"n1", "r0"}), "");
  EXPECT_EQ(See(EvidenceKind::kJobSlow, "r0", 100, "train", {"n2", "r0"}), "r0 HEALTHY>DEGRADED (moves 10% of the best rail (train)); ");
  EXPECT_EQ(SeePeer(EvidenceKind::kPeerNicFailed, {"n2", "r0"}), "r0 DEGRADED>HEALTHY (link up); ");
  // A slow report from before its link went down proves nothing about the link that comes back.
  See(EvidenceKind::kJobSlow, "r0", 100, "train", {"n3", "r0"});
  See(EvidenceKind::kLinkDown, "r0", 0, "link down");
  EXPECT_EQ(Nic("r0").share_permille, 1000);
  EXPECT_EQ(See(EvidenceKind::kJobSlow, "r0", 100, "train", {"n3", "r0"}), "");
  See(EvidenceKind::kLinkUp, "r0");
  EXPECT_EQ(Pass(300 * kNanosPerMs), "r0 PROVING>HEALTHY (link up); ");
}

TEST_F(NodeHealthTest, AJobAloneMakesANicSuspectAtMost) {
  BothUp();
  EXPECT_EQ(See(EvidenceKind::kJobFenced, "r0", 0, "train: silence", {"n1", "r0"}), "r0 HEALTHY>SUSPECT (train: silence); ");
  for (int i = 0; i < 1000; ++i) See(EvidenceKind::kJobFenced, "r0", 0, "train: silence", {"n1", "r" + std::to_string(i)});
  EXPECT_EQ(Nic("r0").state, NicState::kSuspect);
  EXPECT_EQ(Pass(5 * kSecond), "r0 SUSPECT>HEALTHY (link up); ");
}

TEST_F(NodeHealthTest, ADeadPeerExplainsTheComplaint) {
  BothUp();
  See(EvidenceKind::kJobFenced, "r0", 0, "x", {"n1", "r0"});
  See(EvidenceKind::kPeerSuspects, "r0", 0, "y", {"n2", "r0"});
  EXPECT_EQ(SeePeer(EvidenceKind::kPeerNicFailed, {"n1", "r0"}), "");  // n2 complains, too
  EXPECT_EQ(SeePeer(EvidenceKind::kPeerNicFailed, {"n2", "r0"}), "r0 SUSPECT>HEALTHY (link up); ");
  // Known to be dead: no complaint at all, until it is back.
  EXPECT_EQ(See(EvidenceKind::kJobFenced, "r0", 0, "x", {"n1", "r0"}), "");
  SeePeer(EvidenceKind::kPeerNicBack, {"n1", "r0"});
  EXPECT_EQ(See(EvidenceKind::kJobFenced, "r0", 0, "x", {"n1", "r0"}), "r0 HEALTHY>SUSPECT (x); ");
}

TEST_F(NodeHealthTest, ALinkThatCarriesDataAgainTakesTheComplaintBack) {
  BothUp();
  See(EvidenceKind::kJobFenced, "r0", 0, "x", {"n1", "r0"});
  EXPECT_EQ(See(EvidenceKind::kJobLinkUp, "r0", 0, "", {"n2", "r0"}), "");
  EXPECT_EQ(See(EvidenceKind::kJobLinkUp, "r0", 0, "", {"n1", "r0"}), "r0 SUSPECT>HEALTHY (link up); ");
}

TEST_F(NodeHealthTest, OldComplaintsDoNotOutliveTheSuspicion) {
  BothUp();
  See(EvidenceKind::kJobFenced, "r0", 0, "x", {"n1", "r0"});
  Pass(5 * kSecond);
  See(EvidenceKind::kJobFenced, "r0", 0, "y", {"n2", "r0"});
  EXPECT_EQ(SeePeer(EvidenceKind::kPeerNicFailed, {"n2", "r0"}), "r0 SUSPECT>HEALTHY (link up); ");
}

}  // namespace
}  // namespace r2cc::health
