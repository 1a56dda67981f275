// Each mutant is caught by one of a few seeds, and without one these seeds pass.
#include <gtest/gtest.h>

#include <cstdio>

#include "nccl/mutant.h"
#include "tests/seat/run.h"

namespace r2cc::nccl {
namespace {

constexpr uint64_t kSeedsMost = 3000;

class MutantTest : public testing::TestWithParam<SeatMutant> {};

TEST_P(MutantTest, IsCaught) {
  uint64_t seed = 0;
  std::string failure;
  for (; seed < kSeedsMost && failure.empty(); ++seed) {
    mutant = GetParam();
    failure = RunSeed(seed).failure;
    mutant = SeatMutant::kNothing;
  }
  ASSERT_NE(failure, "") << "no seed below " << kSeedsMost << " sees it";
  std::printf("seed %lu: %s\n", seed - 1, failure.c_str());
  EXPECT_EQ(RunSeed(seed - 1).failure, "");
}

INSTANTIATE_TEST_SUITE_P(All, MutantTest,
                         testing::Values(SeatMutant::kCountsCaptured, SeatMutant::kRedirectsCustomOperators,
                                         SeatMutant::kDecidesFromOwnState, SeatMutant::kDecidesEarly, SeatMutant::kSplitsInGroup,
                                         SeatMutant::kSplitsWithWorkUnderWay, SeatMutant::kUsesChildEarly, SeatMutant::kForgetsRegistration,
                                         SeatMutant::kLeaksChild, SeatMutant::kAbortsParentAlone, SeatMutant::kGoesOnAfterAbort,
                                         SeatMutant::kForgetsOrder, SeatMutant::kHidesChildsError, SeatMutant::kDoesNotSettle,
                                         SeatMutant::kCallsNoRoll, SeatMutant::kIgnoresDifferences, SeatMutant::kGoesOnWithoutVerdict,
                                         SeatMutant::kSetsNoWay, SeatMutant::kKeepsWay, SeatMutant::kKeepsUnconfirmedChild));

}  // namespace
}  // namespace r2cc::nccl
