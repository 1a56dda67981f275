#include "netplugin/transport/job_tally.h"

#include <gtest/gtest.h>

namespace r2cc::net {
namespace {

constexpr Nanos kS = kNanosPerSecond;

// A link of the process, on n0, to n1.
void Lose(uint16_t rail, Nanos when, JobTally* tally, plan::EvidenceCause cause = plan::EvidenceCause::kSilence) {
  const std::string nic = "rail" + std::to_string(rail);
  tally->Lost({rail, cause, when, "n0", nic, "n1", nic}, when);
}

PageView Drilled(const std::string& node, const std::string& nic) {
  plan::Plan plan;
  plan.nics = {{node, nic, plan::PlannedState::kFailed, 0, {}, true}};
  return {plan::PageCopyOf(plan), "train"};
}

TEST(JobTally, ReportsNothingForAJobWithoutAFault) {
  JobTally tally;
  tally.Began(kS);
  tally.Use(4, 4, 2 * kS);
  EXPECT_EQ(tally.Line("123", 100 * kS), "");
}

TEST(JobTally, CountsFaultsAsTheDaemonDoes) {
  JobTally tally;
  tally.Began(0);
  Lose(1, 10 * kS, &tally);
  Lose(1, 10 * kS + kS / 2, &tally);  // a second peer's link of the same rail
  tally.Use(3, 4, 10 * kS);
  tally.Passed(1, 10 * kS, 280 * kNanosPerMs);
  tally.Passed(1, 10 * kS + kS / 2, 5 * kNanosPerMs);
  tally.Use(4, 4, 13 * kS);
  Lose(2, 50 * kS, &tally);
  tally.Passed(2, 50 * kS, 0);
  EXPECT_EQ(tally.Line("123", 100 * kS),
            "R2CC: 2 NIC faults survived, longest stall 0.28 s, 3 % of the run at 3/4 bandwidth; r2ccctl job report 123");
}

TEST(JobTally, AFaultWithoutProgressIsNotSurvived) {
  JobTally tally;
  tally.Began(0);
  Lose(1, 10 * kS, &tally);
  Lose(1, 10 * kS, &tally);
  tally.Passed(1, 10 * kS, kS);
  tally.Use(2, 4, 90 * kS);
  EXPECT_EQ(tally.Line("train", 100 * kS),
            "R2CC: 0 NIC faults survived, 1 not, longest stall 1.00 s, 10 % of the run at 2/4 bandwidth; r2ccctl job report train");
}

TEST(JobTally, FewerRailsFromTheBeginAreNoFault) {
  JobTally tally;
  tally.Began(0);
  tally.Use(3, 4, 0);
  EXPECT_EQ(tally.Line("train", 100 * kS), "R2CC: no NIC fault, 100 % of the run at 3/4 bandwidth; r2ccctl job report train");
}

TEST(JobTally, ALossOnPurposeIsNoFault) {
  JobTally tally;
  tally.Began(0);
  Lose(1, 10 * kS, &tally, plan::EvidenceCause::kPageNotice);
  tally.Judge(Drilled("n0", "rail1"), 10 * kS);
  tally.Passed(1, 10 * kS, 5 * kNanosPerMs);
  // Another node's, of which this one hears after its loss.
  Lose(2, 50 * kS, &tally, plan::EvidenceCause::kPeerFenced);
  tally.Judge({}, 50 * kS);
  tally.Judge(Drilled("n1", "rail2"), 51 * kS);
  Lose(3, 70 * kS, &tally, plan::EvidenceCause::kSimulated);
  EXPECT_EQ(tally.Line("123", 100 * kS), "R2CC: no NIC fault, 3 on purpose, longest stall 0.01 s; r2ccctl job report 123");
}

TEST(JobTally, AFaultIsOneWhateverAnOperatorDoes) {
  JobTally tally;
  tally.Began(0);
  // At the time of a drill, and before one.
  for (const Nanos when : {10 * kS, 10 * kS + 1}) {
    Lose(1, when, &tally, when == 10 * kS ? plan::EvidenceCause::kSilence : plan::EvidenceCause::kPeerFenced);
    tally.Passed(1, when, 0);
  }
  tally.Judge(Drilled("n1", "rail1"), 10 * kS);
  Lose(2, 50 * kS, &tally, plan::EvidenceCause::kPeerFenced);
  tally.Passed(2, 50 * kS, 0);
  tally.Judge({}, 50 * kS + plan::kOnPurposeKnown);
  tally.Judge(Drilled("n1", "rail2"), 53 * kS);
  EXPECT_EQ(tally.Line("123", 100 * kS), "R2CC: 2 NIC faults survived; r2ccctl job report 123");
}

TEST(JobTally, AFailureIsNewsOnce) {
  JobTally tally;
  EXPECT_TRUE(tally.Failed("n1", 1));
  EXPECT_FALSE(tally.Failed("n1", 1));
  EXPECT_TRUE(tally.Failed("n1", 2));
}

}  // namespace
}  // namespace r2cc::net
