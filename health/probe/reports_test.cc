#include "health/probe/reports.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace r2cc::health {
namespace {

JobReport Fenced(JobReport::Cause cause) {
  JobReport report;
  report.what = JobReport::What::kLinkFenced;
  report.cause = cause;
  report.cause_text = "its connection broke";
  report.job = "train";
  report.nic = "r1";
  report.peer = {"n1", "r1"};
  report.when = 50;
  return report;
}

TEST(Reports, TheOperatorsSetting) {
  const Evidence evidence = OperatorEvidence("n3", {"n0", "r1"}, EvidenceKind::kWeight, 250, 7);
  EXPECT_EQ(evidence.observer, "n3");
  EXPECT_EQ(evidence.subject, (NicKey{"n0", "r1"}));
  EXPECT_EQ(evidence.kind, EvidenceKind::kWeight);
  EXPECT_EQ(evidence.value, 250);
  EXPECT_EQ(evidence.when, 7);
}

TEST(Reports, ABrokenLinkIsAComplaintAboutBothEnds) {
  for (const auto cause : {JobReport::Cause::kBroken, JobReport::Cause::kSilent}) {
    const std::vector<Evidence> evidence = JobEvidence("n0", Fenced(cause), 60);
    ASSERT_EQ(evidence.size(), 2u);
    EXPECT_EQ(evidence[0].kind, EvidenceKind::kJobFenced);
    EXPECT_EQ(evidence[0].subject, (NicKey{"n0", "r1"}));
    EXPECT_EQ(evidence[0].peer, (NicKey{"n1", "r1"}));
    EXPECT_EQ(evidence[0].when, 50);
    EXPECT_EQ(evidence[0].detail, "train gave up its link to n1/r1: its connection broke");
    EXPECT_EQ(evidence[1].kind, EvidenceKind::kPeerSuspects);
    EXPECT_EQ(evidence[1].subject, (NicKey{"n1", "r1"}));
    EXPECT_EQ(evidence[1].peer, (NicKey{"n0", "r1"}));
    EXPECT_EQ(evidence[1].observer, "n0");
    EXPECT_EQ(evidence[1].detail, "train on n0 gave up its link from n0/r1: its connection broke");
  }
}

TEST(Reports, TheOwnLinkMonitorReportsTheOwnEnd) {
  const std::vector<Evidence> evidence = JobEvidence("n0", Fenced(JobReport::Cause::kOwnLinkDown), 60);
  ASSERT_EQ(evidence.size(), 1u);
  EXPECT_EQ(evidence[0].subject.node, "n0");
}

TEST(Reports, ARecordThatProvesNothingAboutTheNicIsNoEvidence) {
  EXPECT_TRUE(JobEvidence("n0", Fenced(JobReport::Cause::kNotOurs), 60).empty());
}

TEST(Reports, AnUnknownPeerIsNotSuspected) {
  JobReport report = Fenced(JobReport::Cause::kBroken);
  report.peer.nic = "";
  EXPECT_EQ(JobEvidence("n0", report, 60).size(), 1u);
  report.peer = {};
  EXPECT_EQ(JobEvidence("n0", report, 60).size(), 1u);
}

TEST(Reports, AJobsClockDoesNotRunAhead) {
  JobReport report = Fenced(JobReport::Cause::kBroken);
  report.when = INT64_MAX;
  for (const Evidence& evidence : JobEvidence("n0", report, 60)) EXPECT_EQ(evidence.when, 60);
}

TEST(Reports, ALinkThatIsUpAgain) {
  JobReport report = Fenced(JobReport::Cause::kNotOurs);
  report.what = JobReport::What::kLinkUp;
  const std::vector<Evidence> evidence = JobEvidence("n0", report, 60);
  ASSERT_EQ(evidence.size(), 1u);
  EXPECT_EQ(evidence[0].kind, EvidenceKind::kJobLinkUp);
  EXPECT_EQ(evidence[0].peer, (NicKey{"n1", "r1"}));
}

TEST(Reports, LostLargePacketsAreReported) {
  JobReport report = Fenced(JobReport::Cause::kSilent);
  report.cause_text = "stalled";
  report.lost = "one of 4 connections carries nothing";
  std::vector<Evidence> evidence = JobEvidence("n0", report, 60);
  ASSERT_EQ(evidence.size(), 2u);
  EXPECT_EQ(evidence[0].detail, "r1 to n1: one of 4 connections carries nothing; train gave up its link to n1/r1: stalled");
  EXPECT_EQ(evidence[1].detail, "n0/r1 to n1: one of 4 connections carries nothing; train on n0 gave up its link from n0/r1: stalled");
  report.what = JobReport::What::kProofFailed;
  report.lost = "";
  evidence = JobEvidence("n0", report, 60);
  ASSERT_EQ(evidence.size(), 2u);
  EXPECT_EQ(evidence[0].kind, EvidenceKind::kJobFenced);
  EXPECT_EQ(evidence[0].detail, "train cannot open its link to n1/r1: stalled");
}

TEST(Reports, ASlowRailAndItsEnd) {
  JobReport report = Fenced(JobReport::Cause::kNotOurs);
  report.what = JobReport::What::kRailSlow;
  report.share_permille = 250;
  std::vector<Evidence> evidence = JobEvidence("n0", report, 60);
  ASSERT_EQ(evidence.size(), 1u);
  EXPECT_EQ(evidence[0].kind, EvidenceKind::kJobSlow);
  EXPECT_EQ(evidence[0].subject, (NicKey{"n0", "r1"}));
  EXPECT_EQ(evidence[0].peer, (NicKey{"n1", "r1"}));
  EXPECT_EQ(evidence[0].value, 250);
  EXPECT_EQ(evidence[0].detail, "train to n1/r1");
  report.what = JobReport::What::kRailSteady;
  report.share_permille = 1000;
  report.peer = {};
  evidence = JobEvidence("n0", report, 60);
  ASSERT_EQ(evidence.size(), 1u);
  EXPECT_EQ(evidence[0].kind, EvidenceKind::kJobSteady);
  EXPECT_EQ(evidence[0].value, 1000);
  EXPECT_EQ(evidence[0].detail, "train");
}

}  // namespace
}  // namespace r2cc::health
