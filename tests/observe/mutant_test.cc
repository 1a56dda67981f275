// Each planted bug is caught at its recorded seed, and without it that seed passes. Where a change of the code moves a seed, the failure
// names the next one that sees the bug.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "observe/record/mutant.h"
#include "tests/observe/run.h"

namespace r2cc::observe {
namespace {

struct Pinned {
  TapMutant bug;
  uint64_t seed;
};

std::string FailureWith(const Pinned& pinned) {
  mutant = pinned.bug;
  const std::string failure = RunSeed(pinned.seed).failure;
  mutant = TapMutant::kNothing;
  return failure;
}

class MutantTest : public testing::TestWithParam<Pinned> {};

TEST_P(MutantTest, IsCaught) {
  EXPECT_EQ(RunSeed(GetParam().seed).failure, "");
  const std::string failure = FailureWith(GetParam());
  if (!failure.empty()) {
    std::printf("%s\n", failure.c_str());
    return;
  }
  for (Pinned other = GetParam(); other.seed < 20'000; ++other.seed)
    if (!FailureWith(other).empty()) FAIL() << "not at seed " << GetParam().seed << " any more, but at seed " << other.seed;
  FAIL() << "at no seed below 20,000";
}

INSTANTIATE_TEST_SUITE_P(All, MutantTest,
                         testing::Values(Pinned{TapMutant::kDeviceScopeRelease, 0}, Pinned{TapMutant::kOldHead, 64},
                                         Pinned{TapMutant::kOtherTail, 1728}, Pinned{TapMutant::kNextTag, 2},
                                         Pinned{TapMutant::kNoTrailer, 0}, Pinned{TapMutant::kWrapOffByOne, 2},
                                         Pinned{TapMutant::kSlotFreedEarly, 15918}, Pinned{TapMutant::kCursorBeyondHead, 25},
                                         Pinned{TapMutant::kDropUncounted, 2}, Pinned{TapMutant::kOldLayout, 2},
                                         Pinned{TapMutant::kPublishedEarly, 0}, Pinned{TapMutant::kHoldByOrder, 80},
                                         Pinned{TapMutant::kHeldBeforeRecords, 749}, Pinned{TapMutant::kOldMask, 3},
                                         Pinned{TapMutant::kRowsReadLate, 3}, Pinned{TapMutant::kFailedCheckStaysLate, 3},
                                         Pinned{TapMutant::kCommittedBeforeCopied, 2}));

}  // namespace
}  // namespace r2cc::observe
