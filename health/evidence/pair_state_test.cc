#include "health/evidence/pair_state.h"

#include <gtest/gtest.h>

namespace r2cc::health {
namespace {

TEST(PairState, AnAnsweringPairIsUpAndASilentOneProvesItself) {
  EXPECT_EQ(NextPairState(PairState::kUnknown, PairEvent::kAnswer), PairState::kUp);
  EXPECT_EQ(NextPairState(PairState::kLate, PairEvent::kAnswer), PairState::kUp);
  EXPECT_EQ(NextPairState(PairState::kSilent, PairEvent::kAnswer), PairState::kProving);
  EXPECT_EQ(NextPairState(PairState::kProving, PairEvent::kProved), PairState::kUp);
}

TEST(PairState, AMissIsLateAndEndsAProof) {
  EXPECT_EQ(NextPairState(PairState::kUp, PairEvent::kMiss), PairState::kLate);
  EXPECT_EQ(NextPairState(PairState::kProving, PairEvent::kMiss), PairState::kSilent);
  EXPECT_EQ(NextPairState(PairState::kUnknown, PairEvent::kMiss), PairState::kUnknown);
}

TEST(PairState, AResetForgets) {
  for (int state = 0; state < kPairStates; ++state)
    EXPECT_EQ(NextPairState(static_cast<PairState>(state), PairEvent::kReset), PairState::kUnknown);
}

TEST(PairState, OnlyALatePairFallsSilent) {
  EXPECT_EQ(NextPairState(PairState::kLate, PairEvent::kSilence), PairState::kSilent);
  for (const PairState state : {PairState::kUnknown, PairState::kUp, PairState::kSilent, PairState::kProving})
    EXPECT_DEATH(NextPairState(state, PairEvent::kSilence), "") << PairStateName(state);
}

TEST(PairState, ReportsAreSilentUntilProved) {
  EXPECT_EQ(VerdictOf(PairState::kUnknown), PairVerdict::kUnknown);
  EXPECT_EQ(VerdictOf(PairState::kUp), PairVerdict::kAnswering);
  EXPECT_EQ(VerdictOf(PairState::kLate), PairVerdict::kAnswering);
  EXPECT_EQ(VerdictOf(PairState::kSilent), PairVerdict::kSilent);
  EXPECT_EQ(VerdictOf(PairState::kProving), PairVerdict::kSilent);
}

}  // namespace
}  // namespace r2cc::health
