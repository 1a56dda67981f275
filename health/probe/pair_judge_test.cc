#include "health/probe/pair_judge.h"

#include <gtest/gtest.h>

namespace r2cc::health {
namespace {

constexpr Nanos kMs = kNanosPerMs;

// A pair in simulated time. Probes are answered after `round_trip`; none while it is negative.
class PairJudgeTest : public testing::Test {
 protected:
  // Sends one probe each `interval` for `time`, with a witness that is answered all the while if `witnessed`.
  void Probe(Nanos time, Nanos interval, Nanos round_trip, bool witnessed = true) {
    for (const Nanos end = now_ + time; now_ < end; now_ += interval) {
      judge_.Sent(++sequence_, now_);
      if (round_trip >= 0) judge_.Answered(sequence_, now_ + round_trip);
      Judge(now_, witnessed ? now_ : 0);
    }
  }
  // Another pair has answered all until then.
  void Judge(Nanos now, Nanos witness_until) {
    const Witness witness = {0, witness_until};
    judge_.Judge(now, {&witness, 1});
  }

  Nanos now_ = kNanosPerSecond;
  uint64_t sequence_ = 0;
  PairJudge judge_{PairPolicy(), now_};
};

TEST_F(PairJudgeTest, APairThatNeverAnsweredIsUnknown) {
  Probe(5000 * kMs, 20 * kMs, -1);
  EXPECT_EQ(judge_.state(), PairState::kUnknown);
  Probe(20 * kMs, 20 * kMs, kMs);
  EXPECT_EQ(judge_.state(), PairState::kUp);
}

TEST_F(PairJudgeTest, SilenceIsSeveralOverdueProbesWhileThePeerAnswersElsewhere) {
  Probe(1000 * kMs, 100 * kMs, kMs);
  const Nanos dead = now_;
  while (judge_.state() != PairState::kSilent && now_ < dead + 1000 * kMs) Probe(20 * kMs, 20 * kMs, -1);
  EXPECT_EQ(judge_.state(), PairState::kSilent);
  EXPECT_GE(now_ - dead, 120 * kMs);
  EXPECT_LE(now_ - dead, 200 * kMs);
  EXPECT_EQ(judge_.missed_since(), dead);
}

TEST_F(PairJudgeTest, WithoutAWitnessThereIsNoSilence) {
  Probe(1000 * kMs, 100 * kMs, kMs);
  Probe(60'000 * kMs, 20 * kMs, -1, /*witnessed=*/false);
  EXPECT_EQ(judge_.state(), PairState::kUp);
}

TEST_F(PairJudgeTest, AWitnessThatLeftEarlierProvesNothing) {
  Probe(1000 * kMs, 100 * kMs, kMs);
  const Nanos witness = now_ - 1;
  for (int i = 0; i < 100; ++i, now_ += 20 * kMs) {
    judge_.Sent(++sequence_, now_);
    Judge(now_, witness);
  }
  EXPECT_EQ(judge_.state(), PairState::kUp);
}

// Probes that were lost while the other pair lost probes too count for the node, not for the pair.
TEST_F(PairJudgeTest, AWitnessThatLostProbesItselfProvesNothingOfThatTime) {
  Probe(1000 * kMs, 100 * kMs, kMs);
  Probe(1000 * kMs, 20 * kMs, -1, /*witnessed=*/false);
  const Witness back = {now_ - 20 * kMs, now_ + 1000 * kMs};
  judge_.Judge(now_ + 1000 * kMs, {&back, 1});
  EXPECT_EQ(judge_.state(), PairState::kLate) << "the last one alone is overdue";
}

TEST_F(PairJudgeTest, AWitnessBeginsAgainWhereItLostAProbe) {
  Probe(1000 * kMs, 100 * kMs, kMs);
  EXPECT_EQ(judge_.witness().since, kNanosPerSecond);
  Probe(100 * kMs, 100 * kMs, -1);
  const Nanos back = now_;
  Probe(500 * kMs, 100 * kMs, kMs);
  EXPECT_EQ(judge_.witness().since, back);
  EXPECT_EQ(judge_.witness().until, now_ - 100 * kMs);
  // Also where it is no longer known which one that was.
  Probe(10 * kMs, 10 * kMs, -1);
  now_ += 5000 * kMs;
  const Nanos again = now_;
  Probe(200 * kMs, 100 * kMs, kMs);
  EXPECT_EQ(judge_.witness().since, again);
}

TEST_F(PairJudgeTest, FewLossesAreNoSilence) {
  Probe(1000 * kMs, 100 * kMs, kMs);
  for (int i = 0; i < 200; ++i) {
    Probe(80 * kMs, 20 * kMs, -1);  // four in a row
    Probe(20 * kMs, 20 * kMs, kMs);
    ASSERT_NE(judge_.state(), PairState::kSilent);
  }
  EXPECT_NEAR(100.0 * judge_.measures().recent_lost / judge_.measures().recent, 80, 3);
}

TEST_F(PairJudgeTest, LossesBeforeARepairAreForgottenTenSecondsLater) {
  Probe(1000 * kMs, 100 * kMs, kMs);
  Probe(60'000 * kMs, 20 * kMs, -1);
  // Asked in turn from then on, as a pair that no job uses.
  Probe(20'000 * kMs, 2'500 * kMs, kMs);
  EXPECT_GE(judge_.measures().recent, 2U);
  EXPECT_EQ(judge_.measures().recent_lost, 0U);
}

TEST_F(PairJudgeTest, ALateAnswerClearsAllBeforeIt) {
  Probe(1000 * kMs, 100 * kMs, kMs);
  Probe(80 * kMs, 20 * kMs, -1);
  now_ += 60 * kMs;
  Judge(now_, now_);
  EXPECT_EQ(judge_.state(), PairState::kLate);
  EXPECT_TRUE(judge_.Answered(sequence_, now_));
  EXPECT_EQ(judge_.state(), PairState::kUp);
  Judge(now_ + 1000 * kMs, now_ + 1000 * kMs);
  EXPECT_EQ(judge_.state(), PairState::kUp);
}

TEST_F(PairJudgeTest, PatienceIsLearntFromThePairsOwnAnswers) {
  EXPECT_EQ(judge_.patience(), 30 * kMs);
  Probe(10'000 * kMs, 100 * kMs, 80 * kMs);
  EXPECT_GE(judge_.patience(), 80 * kMs);
  EXPECT_LE(judge_.patience(), 120 * kMs);
  for (int i = 0; i < 50; ++i) Probe(200 * kMs, 100 * kMs, (i % 2 == 0 ? 1 : 900) * kMs);
  EXPECT_EQ(judge_.patience(), 250 * kMs);
}

TEST_F(PairJudgeTest, OnlyATimelyAnswerIsAWitnessForOthers) {
  Probe(1000 * kMs, 100 * kMs, kMs);
  const Nanos timely = judge_.witness().until;
  EXPECT_EQ(timely, now_ - 100 * kMs);
  Probe(100 * kMs, 100 * kMs, 500 * kMs);
  EXPECT_EQ(judge_.witness().until, timely);
}

TEST_F(PairJudgeTest, ItProvesItselfLongerEachTime) {
  Probe(1000 * kMs, 100 * kMs, kMs);
  Nanos proof_before = 0;
  for (int flap = 0; flap < 4; ++flap) {
    Probe(300 * kMs, 20 * kMs, -1);
    ASSERT_EQ(judge_.state(), PairState::kSilent);
    const Nanos back = now_;
    while (judge_.state() != PairState::kUp && now_ < back + 60'000 * kMs) Probe(20 * kMs, 20 * kMs, kMs);
    const Nanos proof = now_ - back;
    EXPECT_GE(proof, 100 * kMs);
    if (flap > 0) {
      EXPECT_NEAR(static_cast<double>(proof), 2.0 * static_cast<double>(proof_before), 45e6);
    }
    proof_before = proof;
  }
  // Forgiven after quiet minutes.
  Probe(600'000 * kMs, 100 * kMs, kMs);
  Probe(300 * kMs, 20 * kMs, -1);
  const Nanos back = now_;
  while (judge_.state() != PairState::kUp && now_ < back + 60'000 * kMs) Probe(20 * kMs, 20 * kMs, kMs);
  EXPECT_LE(now_ - back, 160 * kMs);
}

TEST_F(PairJudgeTest, AMissDuringTheProofStartsAgain) {
  Probe(1000 * kMs, 100 * kMs, kMs);
  Probe(300 * kMs, 20 * kMs, -1);
  Probe(40 * kMs, 20 * kMs, kMs);
  EXPECT_EQ(judge_.state(), PairState::kProving);
  Probe(80 * kMs, 20 * kMs, -1);
  EXPECT_EQ(judge_.state(), PairState::kSilent);
}

TEST_F(PairJudgeTest, UnrequestedAnswersAreRefused) {
  Probe(100 * kMs, 100 * kMs, kMs);
  EXPECT_FALSE(judge_.Answered(sequence_, now_));  // twice
  EXPECT_FALSE(judge_.Answered(sequence_ + 1, now_));
  judge_.Sent(++sequence_, now_);
  judge_.Forget();
  EXPECT_FALSE(judge_.Answered(sequence_, now_));
}

TEST_F(PairJudgeTest, ResetForgetsSilence) {
  Probe(1000 * kMs, 100 * kMs, kMs);
  Probe(300 * kMs, 20 * kMs, -1);
  judge_.Reset(now_);
  EXPECT_EQ(judge_.state(), PairState::kUnknown);
  EXPECT_EQ(judge_.missed_since(), 0);
}

TEST_F(PairJudgeTest, ProbesLostInASilenceDoNotDelayTheNextOne) {
  Probe(1000 * kMs, 100 * kMs, kMs);
  for (int silence = 0; silence < 5; ++silence) {
    const Nanos dead = now_;
    while (judge_.state() != PairState::kSilent && now_ < dead + 2000 * kMs) Probe(20 * kMs, 20 * kMs, -1);
    EXPECT_LE(now_ - dead, 200 * kMs) << silence;
    Probe(2500 * kMs, 20 * kMs, -1);
    Probe(5000 * kMs, 100 * kMs, kMs);
    ASSERT_EQ(judge_.state(), PairState::kUp) << silence;
  }
  Probe(2500 * kMs, 20 * kMs, -1);
  EXPECT_GT(judge_.measures().recent_lost, 0U);  // for people it counts
}

}  // namespace
}  // namespace r2cc::health
