#include "netplugin/transport/probes.h"

#include <gtest/gtest.h>

#include <string>

#include "netplugin/flow/tuning.h"

namespace r2cc::net {
namespace {

constexpr Nanos kMs = kNanosPerMs;
const OobAddress kPeer{"10.0.0.1", 7000}, kOther{"10.0.0.1", 7001};

class ProbesTest : public testing::Test {
 protected:
  // c: a connection is to be made; x: one is to be closed.
  std::string Actions() {
    std::string text;
    for (const Probes::ConnectionAction& action : probes_.TakeActions()) {
      const bool connect = action.kind == Probes::ConnectionAction::Kind::kConnect;
      text += connect ? 'c' : 'x';
      if (connect) last_ = action.connection;
    }
    return text;
  }
  // Asks as somebody who has received nothing since `last_received`.
  void Ask(Nanos last_received = 0, const OobAddress& peer = kPeer) {
    question_ = {now_, last_received};
    probes_.Ask(peer, question_);
  }
  std::optional<ProbeResult> Answer() const { return probes_.AnswerTo(kPeer, question_); }

  Probes probes_;
  Probes::Question question_;
  uint64_t last_ = 0;
  Nanos now_ = 100 * kNanosPerSecond;
};

TEST_F(ProbesTest, AllQuestionsShareOneConnectionWhileItIsOpen) {
  Ask();
  EXPECT_EQ(Actions(), "c");
  EXPECT_EQ(Answer(), std::nullopt);
  probes_.Connected(last_, now_ + kMs);
  EXPECT_EQ(Answer(), ProbeResult::kAnswers);
  for (int i = 0; i < 10'000; ++i, now_ += 250 * kMs) {
    Ask(99 * kNanosPerSecond);
    probes_.Tick(now_);
    ASSERT_EQ(Answer(), ProbeResult::kAnswers);
    ASSERT_EQ(Actions(), "");
  }
}

TEST_F(ProbesTest, ALaterFrameOfThePeerMakesANewConnection) {
  Ask();
  Actions();
  probes_.Connected(last_, now_);
  const uint64_t old = last_;
  now_ += 10 * kMs;
  Ask(now_ - kMs);
  EXPECT_EQ(Answer(), std::nullopt);
  EXPECT_EQ(Actions(), "xc");
  // What is closed has no say.
  probes_.Ended(old, ProbeResult::kSilent, now_);
  EXPECT_EQ(Answer(), std::nullopt);
  probes_.Ended(last_, ProbeResult::kRefused, now_);
  EXPECT_EQ(Answer(), ProbeResult::kRefused);
}

TEST_F(ProbesTest, AnAttemptIsRefusedOrStaysWithoutAnAnswer) {
  Ask();
  EXPECT_EQ(Actions(), "c");
  probes_.Ended(last_, ProbeResult::kRefused, now_);
  EXPECT_EQ(Answer(), ProbeResult::kRefused);
  EXPECT_EQ(Actions(), "x");
  now_ += kMs;
  Ask();
  EXPECT_EQ(Answer(), std::nullopt) << "an answer from before the question";
  EXPECT_EQ(Actions(), "c");
  probes_.Tick(now_ + tuning::kConnectMost - 1);
  EXPECT_EQ(Answer(), std::nullopt);
  probes_.Tick(now_ + tuning::kConnectMost);
  EXPECT_EQ(Answer(), ProbeResult::kSilent);
  EXPECT_EQ(Actions(), "x");
}

TEST_F(ProbesTest, AnEndedConnectionIsMadeAgainByTheNextQuestionAndReportsNothing) {
  Ask();
  Actions();
  probes_.Connected(last_, now_);
  probes_.Ended(last_, ProbeResult::kSilent, now_ + kMs);
  EXPECT_EQ(Answer(), std::nullopt);
  EXPECT_EQ(Actions(), "x");
  now_ += 2 * kMs;
  Ask();
  EXPECT_EQ(Actions(), "c");
}

TEST_F(ProbesTest, AProcessThatHungUpCountsAsRunningForAWhileOrUntilAFrameComes) {
  Ask();
  Actions();
  probes_.Connected(last_, now_);
  probes_.Ended(last_, ProbeResult::kRuns, now_ += tuning::kSpeaksWithin);
  Ask();
  Actions();
  EXPECT_EQ(Answer(), std::nullopt);
  probes_.Connected(last_, now_ += kMs);
  EXPECT_EQ(Answer(), ProbeResult::kRuns);
  EXPECT_EQ(probes_.AnswerTo(kPeer, {now_, now_}), ProbeResult::kAnswers) << "the peer was heard since";
  now_ += tuning::kRunsFor;
  Ask();
  EXPECT_EQ(Answer(), ProbeResult::kAnswers) << "it is stopped now";
}

TEST_F(ProbesTest, AnUnusedProbeIsClosedAndForgotten) {
  Ask();
  Ask(0, kOther);
  EXPECT_EQ(Actions(), "cc");
  probes_.Connected(last_, now_);
  probes_.Tick(now_ + tuning::kProbeUnaskedFor - 1);
  EXPECT_EQ(Actions(), "x") << "that of the peer that does not answer";
  probes_.Tick(now_ + tuning::kProbeUnaskedFor);
  EXPECT_EQ(Actions(), "x");
  EXPECT_EQ(probes_.AnswerTo(kOther, {now_, 0}), std::nullopt);
  probes_.Tick(now_ + tuning::kProbeUnaskedFor + 1);
  EXPECT_EQ(Answer(), std::nullopt) << "its failure is forgotten, too";
  probes_.Tick(now_ + tuning::kProbeUnaskedFor + 2);
  EXPECT_EQ(Actions(), "");
}

}  // namespace
}  // namespace r2cc::net
