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
  Mutant bug;
  uint64_t seed;
};

std::string FailureWith(const Pinned& pinned) {
  mutant = pinned.bug;
  const std::string failure = RunSeed(pinned.seed).failure;
  mutant = Mutant::kNothing;
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
                         testing::Values(Pinned{Mutant::kDeviceScopeRelease, 0}, Pinned{Mutant::kOldHead, 64},
                                         Pinned{Mutant::kOtherTail, 1728}, Pinned{Mutant::kNextTag, 2}, Pinned{Mutant::kNoTrailer, 0},
                                         Pinned{Mutant::kWrapOffByOne, 2}, Pinned{Mutant::kSlotFreedEarly, 15918},
                                         Pinned{Mutant::kCursorBeyondHead, 25}, Pinned{Mutant::kDropUncounted, 2},
                                         Pinned{Mutant::kOldLayout, 2}, Pinned{Mutant::kPublishedEarly, 0},
                                         Pinned{Mutant::kHoldByOrder, 80}, Pinned{Mutant::kHeldBeforeRecords, 749},
                                         Pinned{Mutant::kOldMask, 3}, Pinned{Mutant::kRowsReadLate, 3},
                                         Pinned{Mutant::kFailedCheckStaysLate, 3}, Pinned{Mutant::kCommittedBeforeCopied, 2}));

}  // namespace
}  // namespace r2cc::observe
