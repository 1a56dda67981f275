#include "netplugin/transport/job_tally.h"

#include <gtest/gtest.h>

namespace r2cc::net {
namespace {

constexpr Nanos kS = kNanosPerSecond;

TEST(JobTally, SaysNothingOfAJobWithoutAFault) {
  JobTally tally;
  tally.Began(kS);
  tally.Use(4, 4, 2 * kS);
  EXPECT_EQ(tally.Line("123", 100 * kS), "");
}

TEST(JobTally, CountsFaultsAsTheDaemonDoes) {
  JobTally tally;
  tally.Began(0);
  tally.Lost(1, 10 * kS);
  tally.Lost(1, 10 * kS + kS / 2);  // a second peer's link of the same rail
  tally.Use(3, 4, 10 * kS);
  tally.Passed(1, 10 * kS, 280 * kNanosPerMs);
  tally.Passed(1, 10 * kS + kS / 2, 5 * kNanosPerMs);
  tally.Use(4, 4, 13 * kS);
  tally.Lost(2, 50 * kS);
  tally.Passed(2, 50 * kS, 0);
  EXPECT_EQ(tally.Line("123", 100 * kS),
            "R2CC: 2 NIC faults survived, longest stall 0.28 s, 3 % of the run at 3/4 bandwidth; r2ccctl job report 123");
}

TEST(JobTally, AFaultWithoutProgressIsNotSurvived) {
  JobTally tally;
  tally.Began(0);
  tally.Lost(1, 10 * kS);
  tally.Lost(1, 10 * kS);
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

TEST(JobTally, AFailureIsNewsOnce) {
  JobTally tally;
  EXPECT_TRUE(tally.Failed("n1", 1));
  EXPECT_FALSE(tally.Failed("n1", 1));
  EXPECT_TRUE(tally.Failed("n1", 2));
}

}  // namespace
}  // namespace r2cc::net
