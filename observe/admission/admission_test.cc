#include "observe/admission/admission.h"

#include <gtest/gtest.h>

namespace r2cc::observe {
namespace {

constexpr uint64_t kUnit = kRecordAlignment;

TEST(Admission, ARecordLiesWithinTheRingAndOverNothingThatIsKept) {
  constexpr uint64_t kRing = 8 * kUnit;
  for (uint64_t head = 0; head <= 24; ++head)
    for (uint64_t kept = 0; kept <= std::min<uint64_t>(head, 8); ++kept)
      for (uint64_t units = 1; units <= 9; ++units) {
        const Decision decision = PlaceRecord(head * kUnit, (head - kept) * kUnit, units * kUnit, kRing);
        // By hand: unit after unit.
        const uint64_t rest = 8 - head % 8, pad = units > rest ? rest : 0;
        const bool fits = units <= 8 && kept + pad + units <= 8;
        ASSERT_EQ(decision.verdict == Verdict::kTake, fits) << head << " " << kept << " " << units;
        if (!fits) continue;
        EXPECT_EQ(decision.begin, (head + pad) * kUnit);
        EXPECT_EQ(decision.pad, pad * kUnit);
        EXPECT_LE(decision.begin % kRing + units * kUnit, kRing);
      }
}

TEST(Admission, ScheduleGroupsAndPhases) {
  StepState state;
  state.words = {.groups = 1, .every = 3};
  const auto verdict = [&](Phase phase) { return Decide(state, phase, kUnit, 8 * kUnit, 4).verdict; };
  EXPECT_EQ(verdict(Phase::kDecode), Verdict::kTake);
  state.step = 1;
  EXPECT_EQ(verdict(Phase::kDecode), Verdict::kUnwanted);
  state.step = 3;
  EXPECT_EQ(verdict(Phase::kDecode), Verdict::kTake);
  state.words.phases = static_cast<uint64_t>(Phase::kDecode);
  EXPECT_EQ(verdict(Phase::kPrefill), Verdict::kUnwanted);
  EXPECT_EQ(verdict(Phase::kDecode), Verdict::kTake);
  state.words.groups = 0;
  EXPECT_EQ(verdict(Phase::kDecode), Verdict::kUnwanted);
  state.words.groups = 1;
  state.words.closed = 1;
  EXPECT_EQ(verdict(Phase::kDecode), Verdict::kUnwanted);
  state.words.closed = 0;
  state.words.every = 0;
  EXPECT_EQ(verdict(Phase::kDecode), Verdict::kUnwanted) << "no such schedule: nothing, and no division";
}

TEST(Admission, StepsAreTakenDroppedOrNotWantedAndNothingElse) {
  StepState state;
  state.words = {.groups = 1, .every = 2};
  for (int i = 0; i < 20; ++i) {
    const Decision decision = Decide(state, Phase::kDecode, 2 * kUnit, 8 * kUnit, 3);
    Advance(&state, decision, 2 * kUnit);
  }
  EXPECT_EQ(state.step, 20U);
  EXPECT_EQ(state.unwanted, 10U);
  EXPECT_EQ(state.sequence, 3U) << "not more records than there is room for";
  EXPECT_EQ(state.dropped, 7U);
  state.words.released = 1;
  state.words.tail = 2 * kUnit;
  EXPECT_EQ(Decide(state, Phase::kDecode, 2 * kUnit, 8 * kUnit, 3).verdict, Verdict::kTake);
}

}  // namespace
}  // namespace r2cc::observe
