#include "netplugin/link/fault_watch.h"

#include <gtest/gtest.h>

#include <vector>

#include "netplugin/flow/tuning.h"

namespace r2cc::net {
namespace {

constexpr PathEpoch kLost = 7;
constexpr PathEpoch kOther = 8;
constexpr uint64_t kBytes = 100;
constexpr LinkFault kSilence{plan::EvidenceCause::kSilence, 0};

class FaultWatchTest : public testing::Test {
 protected:
  SendFlows::Flow* Open() {
    SendFlows::Flow* const flow = flows_.Open();
    flow->state = SendFlows::State::kOpen;
    flow->home = 9;  // none of the links here
    return flow;
  }
  // One message of one chunk, in flight on `epoch`.
  void Send(SendFlows::Flow* flow, PathEpoch epoch, Nanos now) {
    const bool was_idle = flow->ledger.posted_through() == flow->ledger.acked_through();
    const MessageId message = flow->ledger.Post({buffer_, 0}, kBytes);
    watch_.Posted(flow, was_idle, now);
    const uint64_t capacity = kBytes;
    ASSERT_TRUE(flow->ledger.Grant(message, {&capacity, 1}));
    Chunk chunk;
    ASSERT_TRUE(flow->ledger.Pull(epoch, &chunk));
  }
  void Ack(SendFlows::Flow* flow, MessageId through, Nanos now) {
    ASSERT_TRUE(flow->ledger.AckThrough(through));
    watch_.Progressed(flow, now);
  }
  // What was reported since the last call.
  std::vector<SessionAction> Passed() { return Taken(SessionAction::Kind::kLinkPassed); }
  std::vector<SessionAction> Taken(SessionAction::Kind kind) {
    std::vector<SessionAction> taken = std::exchange(actions_, {});
    std::erase_if(taken, [kind](const SessionAction& action) { return action.kind != kind; });
    return taken;
  }

  Nanos now_ = 12;  // of the answer
  std::byte buffer_[kBytes] = {};
  std::vector<SessionAction> actions_;
  SendFlows flows_{{}, StripeMode::kBalance};
  FaultWatch watch_{&actions_, &flows_};
};

TEST_F(FaultWatchTest, AStallIsTheGapInAFlowsProgress) {
  SendFlows::Flow* const flow = Open();
  Send(flow, kLost, 1000);
  Send(flow, kLost, 1010);
  Ack(flow, 1, 1020);
  watch_.Lost(2, 5, kLost, kSilence, 1250);  // the silence was noticed so late
  watch_.Answered(2, 5, now_);
  EXPECT_TRUE(Passed().empty()) << "the job has not gone on yet";
  Ack(flow, 2, 1300);
  const std::vector<SessionAction> passed = Passed();
  ASSERT_EQ(passed.size(), 1u);
  EXPECT_EQ(passed[0].kind, SessionAction::Kind::kLinkPassed);
  EXPECT_EQ(passed[0].link, 2);
  EXPECT_EQ(passed[0].incarnation, 5u);
  EXPECT_EQ(passed[0].report.duration, 280) << "from the message that was done before";
  EXPECT_EQ(passed[0].report.since, 1250);
  EXPECT_EQ(passed[0].report.until, 1300);
}

TEST_F(FaultWatchTest, AFlowThatWasIdleWaitsFromItsPostOn) {
  SendFlows::Flow* const flow = Open();
  Send(flow, kOther, 10);
  Ack(flow, 1, 20);
  Send(flow, kLost, 900);
  watch_.Lost(0, 1, kLost, kSilence, 1000);
  watch_.Answered(0, 1, now_);
  Ack(flow, 2, 1100);
  const std::vector<SessionAction> passed = Passed();
  ASSERT_EQ(passed.size(), 1u);
  EXPECT_EQ(passed[0].report.duration, 200);
}

TEST_F(FaultWatchTest, TheLongestGapOfAllFlowsCountsAndAllMustGoOn) {
  SendFlows::Flow* const one = Open();
  SendFlows::Flow* const two = Open();
  for (SendFlows::Flow* const flow : {one, two}) Send(flow, kLost, 1);
  Send(two, kLost, 1);
  watch_.Lost(0, 1, kLost, kSilence, 10);
  Ack(one, 1, 15);
  watch_.Answered(0, 1, now_);
  Ack(two, 1, 101);
  EXPECT_TRUE(Passed().empty());
  Ack(two, 2, 131);
  const std::vector<SessionAction> passed = Passed();
  ASSERT_EQ(passed.size(), 1u);
  EXPECT_EQ(passed[0].report.duration, 100);
  EXPECT_EQ(passed[0].report.until, 101);
  EXPECT_EQ(passed[0].flow, two->id);
}

TEST_F(FaultWatchTest, ALossThatHeldNothingIsPassedWithTheNextProgress) {
  SendFlows::Flow* const flow = Open();
  Send(flow, kOther, 0);
  Send(flow, kOther, 0);
  watch_.Lost(0, 1, kLost, kSilence, 10);
  Ack(flow, 1, 20);
  EXPECT_TRUE(Passed().empty()) << "the peer has not ended it yet";
  watch_.Answered(0, 1, now_);
  EXPECT_TRUE(Passed().empty());
  Ack(flow, 2, 40);
  const std::vector<SessionAction> passed = Passed();
  ASSERT_EQ(passed.size(), 1u);
  EXPECT_EQ(passed[0].report.duration, 0) << "nothing waited for it";
}

TEST_F(FaultWatchTest, AFlowThatFailsIsNeverPast) {
  SendFlows::Flow* const flow = Open();
  Send(flow, kLost, 0);
  watch_.Lost(0, 1, kLost, kSilence, 10);
  watch_.Answered(0, 1, now_);
  watch_.Failed(*flow);
  watch_.Closed(*flow, false, 20);
  EXPECT_TRUE(Passed().empty());
}

TEST_F(FaultWatchTest, EachOfTwoLossesThatHoldOneFlowIsMeasured) {
  SendFlows::Flow* const flow = Open();
  Send(flow, kLost, 0);
  Send(flow, kOther, 0);
  watch_.Lost(0, 1, kLost, kSilence, 10);
  watch_.Lost(1, 1, kOther, kSilence, 20);
  watch_.Answered(0, 1, now_);
  watch_.Answered(1, 1, now_);
  Ack(flow, 2, 500);
  EXPECT_EQ(Passed().size(), 2u);
}

TEST_F(FaultWatchTest, AMessageThatWasPostedWithoutATimeGetsTheNextTicks) {
  SendFlows::Flow* const flow = Open();
  flow->ledger.set_eager_window(8);
  Chunk chunk;
  SendFlows small{{.eager_bytes = kBytes}, StripeMode::kBalance};
  SendFlows::Flow* const eager = small.Open();
  eager->state = SendFlows::State::kOpen;
  eager->ledger.set_eager_window(8);
  eager->progressed = 1;
  ASSERT_TRUE(small.PostEagerly(eager, {buffer_, 0}, kBytes, kLost, &chunk));
  EXPECT_EQ(eager->progressed, 0);
  small.Date(77);
  EXPECT_EQ(eager->progressed, 77);
}

TEST_F(FaultWatchTest, ALossIsReportedWhenThePeerAnswers) {
  SendFlows::Flow* const flow = Open();
  Send(flow, kLost, 1);
  watch_.Lost(2, 5, kLost, kSilence, 10);
  watch_.Tick(11);
  EXPECT_TRUE(actions_.empty()) << "its process may be gone";
  watch_.Answered(2, 5, now_);
  const std::vector<SessionAction> lost = Taken(SessionAction::Kind::kLinkLost);
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].link, 2);
  EXPECT_EQ(lost[0].report.cause, plan::EvidenceCause::kSilence);
  EXPECT_EQ(lost[0].report.since, 10);
  watch_.Tick(10 + 2 * tuning::kReportEvery);
  EXPECT_TRUE(actions_.empty()) << "once";
}

TEST_F(FaultWatchTest, ALossWithoutAnAnswerIsReportedUnlessTheProcessIsGone) {
  SendFlows::Flow* const flow = Open();
  Send(flow, kLost, 1);
  watch_.Lost(0, 1, kLost, kSilence, 10);
  watch_.Tick(10 + tuning::kReportEvery);
  EXPECT_EQ(Taken(SessionAction::Kind::kLinkLost).size(), 1u) << "a machine that lost its power";
  watch_.Lost(1, 1, kOther, kSilence, 20);
  watch_.End(/*gone=*/false);
  EXPECT_EQ(Taken(SessionAction::Kind::kLinkLost).size(), 1u) << "the deadline passed";
  watch_.Lost(1, 2, kOther, kSilence, 30);
  watch_.End(/*gone=*/true);
  watch_.Tick(30 + tuning::kReportEvery);
  EXPECT_TRUE(actions_.empty()) << "a rank that was killed loses all its links, and no NIC is at fault";
}

TEST_F(FaultWatchTest, ALinkThatIsLostAtTheEndOfAJobIsNoFault) {
  SendFlows::Flow* const flow = Open();
  SendFlows::Flow* const other = Open();
  flow->state = SendFlows::State::kFailed;  // the peer has closed it
  other->closing = true;
  watch_.Lost(0, 1, kLost, kSilence, 10);
  watch_.Answered(0, 1, now_);
  watch_.Tick(10 + tuning::kReportEvery);
  EXPECT_TRUE(actions_.empty());
}

TEST_F(FaultWatchTest, AFlowWhoseAcknowledgementsComeByTheLinkWaits) {
  SendFlows::Flow* const flow = Open();
  flow->home = 2;
  Send(flow, kOther, 5);  // its data goes by another link
  watch_.Lost(2, 1, kLost, kSilence, 250);
  watch_.Answered(2, 1, 251);
  Ack(flow, 1, 260);
  const std::vector<SessionAction> passed = Passed();
  ASSERT_EQ(passed.size(), 1u);
  EXPECT_EQ(passed[0].report.duration, 255);
}

TEST_F(FaultWatchTest, AGrantThatWasNotPostedWasNotLost) {
  for (const bool lost : {true, false}) {
    SendFlows::Flow* const flow = Open();
    flow->home = 2;
    const Nanos begin = kNanosPerSecond;
    flow->ledger.Post({buffer_, 0}, kBytes);
    watch_.Posted(flow, true, begin);
    watch_.Lost(2, 1, kLost, kSilence, begin + 250 * kNanosPerMs);
    watch_.Answered(2, 1, begin + 251 * kNanosPerMs);
    const Nanos granted = begin + (lost ? 252 * kNanosPerMs : 2 * kNanosPerSecond);
    const uint64_t capacity = kBytes;
    ASSERT_TRUE(flow->ledger.Grant(0, {&capacity, 1}));
    watch_.Granted(*flow, granted);
    Chunk chunk;
    ASSERT_TRUE(flow->ledger.Pull(kOther, &chunk));
    Ack(flow, 1, granted + kNanosPerMs);
    const std::vector<SessionAction> passed = Passed();
    ASSERT_EQ(passed.size(), 1u) << lost;
    EXPECT_EQ(passed[0].report.duration, lost ? 253 * kNanosPerMs : 0) << "a receiver that computes for two seconds is no stall";
    flows_.Close(flow->id);
  }
}

}  // namespace
}  // namespace r2cc::net
