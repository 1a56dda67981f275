// What a RecvSession says of its flows. tests/sim has both ends.

#include "netplugin/link/recv_session.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

namespace r2cc::net {
namespace {

constexpr FlowId kFlow = 1;
constexpr Incarnation kFirst = 1;

struct RecvSessionTest : testing::Test {
  RecvSessionTest() {
    session.OobUp(0);
    session.Receive(kOobChannel, frames::FlowOpen{.flow = kFlow}, 0);
    session.AcceptFlow(kFlow, 0);
    EXPECT_EQ(session.Greet(0, kFirst, 0, 0, 0), RecvSession::Admission::kAccepted);
  }
  RecvSession session{{.peer = "peer"}, 0};
};

TEST_F(RecvSessionTest, AnEagerMessageLargerThanABufferPostedWhileItArrivesEndsItsFlow) {
  const Chunk chunk{kFlow, 0, 3, 128, 0, nullptr, 3, true};
  std::byte* to = nullptr;
  ASSERT_TRUE(session.Begin(0, kFirst, chunk, &to));
  ASSERT_NE(to, nullptr);
  char buffer[2];
  session.Post(kFlow, buffer, sizeof(buffer), 0);
  EXPECT_EQ(session.flows().at(kFlow).error, "");
  EXPECT_FALSE(session.Finish(0, kFirst, chunk));
  EXPECT_EQ(session.flows().at(kFlow).error, "R2CC: a message of peer peer is larger than the buffer posted for it");
}

TEST_F(RecvSessionTest, APostIsNoNewsForTheJobUnlessItsMessageIsThereAlready) {
  std::ignore = session.TakeChanged();
  char buffer[3];
  session.Post(kFlow, buffer, sizeof(buffer), 0);
  EXPECT_TRUE(session.TakeChanged().empty());
  for (const MessageId message : {0, 1}) {
    const Chunk chunk{kFlow, message, 3, 128, 0, nullptr, 3, true};
    std::byte* to = nullptr;
    ASSERT_TRUE(session.Begin(0, kFirst, chunk, &to));
    session.Finish(0, kFirst, chunk);
    EXPECT_EQ(session.TakeChanged().size(), message == 0 ? 1u : 0u);
  }
  session.Post(kFlow, buffer, sizeof(buffer), 0);
  EXPECT_EQ(session.TakeChanged().size(), 1u);
  EXPECT_EQ(session.flows().at(kFlow).ledger.placed_through(), 2u);
}

TEST_F(RecvSessionTest, APostedMessageIsOutstandingUntilItIsPlaced) {
  EXPECT_EQ(session.Requests().outstanding, 0u);
  char buffer[3];
  session.Post(kFlow, buffer, sizeof(buffer), 0);
  EXPECT_EQ(session.Requests().outstanding, 1u);
  EXPECT_EQ(session.WaitsFor(0).what, plan::WaitFor::kData);
  // Its host has vanished.
  session.OobDown(0);
  session.PeerProbed(ProbeResult::kSilent, kNanosPerSecond);
  EXPECT_EQ(session.WaitsFor(kNanosPerSecond).what, plan::WaitFor::kReach);
  session.PeerProbed(ProbeResult::kAnswers, kNanosPerSecond);
  EXPECT_EQ(session.WaitsFor(kNanosPerSecond).what, plan::WaitFor::kData);
  const Chunk chunk{kFlow, 0, 3, 128, 0, nullptr, 3, true};
  std::byte* to = nullptr;
  ASSERT_TRUE(session.Begin(0, kFirst, chunk, &to));
  session.Finish(0, kFirst, chunk);
  EXPECT_EQ(session.Requests().outstanding, 0u);
  EXPECT_EQ(session.Requests().done, 1u);
}

// The peer has crashed, and what listens at its address now is a process of the job's next run: it accepts the probes, and hangs up.
TEST(RecvSessionProbed, APeerWhoseAddressAnotherProcessHasIsGivenUpAfterTheDeadline) {
  for (const ProbeResult result : {ProbeResult::kAnswers, ProbeResult::kRuns}) {
    RecvSession session({.deadline = 3 * kNanosPerSecond, .peer = "peer"}, 0);
    session.OobUp(0);
    session.Receive(kOobChannel, frames::FlowOpen{.flow = kFlow}, 0);
    session.AcceptFlow(kFlow, 0);
    session.Post(kFlow, nullptr, 0, 0);
    session.OobDown(0);
    session.PeerProbed(result, 0);
    for (Nanos now = 0; now <= 4 * kNanosPerSecond; now += 10 * kNanosPerMs) {
      session.Tick(now);
      EXPECT_FALSE(session.failed() && now < 3 * kNanosPerSecond);
    }
    EXPECT_EQ(session.failed(), result == ProbeResult::kRuns) << "one that is stopped is waited for";
  }
}

// What arrives there names its flow by so many low bits.
TEST(RecvSessionSlots, AFlowWithTheNumberOfAnotherIsRefusedAtItsOpening) {
  RecvSession session({.flow_slots = 16, .peer = "peer"}, 0);
  session.OobUp(0);
  const auto open = [&session](FlowId flow) {
    session.TakeActions();
    session.Receive(kOobChannel, frames::FlowOpen{.flow = flow}, 0);
    return session.TakeActions();
  };
  EXPECT_EQ(open(1).at(0).kind, SessionAction::Kind::kFlowOpened);
  for (const bool accepted : {false, true}) {
    if (accepted) session.AcceptFlow(1, 0);
    const FlowId other = accepted ? 33 : 17;
    const auto actions = open(other);
    ASSERT_EQ(actions.size(), 2u);
    EXPECT_EQ(actions[0].text,
              "R2CC: flow " + std::to_string(other) +
                  " of peer peer is refused: RDMA rails cannot distinguish it from another open flow; that flow must be closed first");
    const auto& refusal = std::get<frames::FlowOpened>(actions[1].frame);
    EXPECT_FALSE(refusal.ok);
    EXPECT_EQ(refusal.cause, kSlotTaken);
    EXPECT_EQ(open(other).size(), 1u) << "said once, and answered each time";
  }
  EXPECT_EQ(open(2).at(0).kind, SessionAction::Kind::kFlowOpened);
  session.CloseFlow(1, {}, 0);
  session.Receive(kOobChannel, frames::ByeAck{.flow = 1}, 0);
  EXPECT_EQ(open(49).at(0).kind, SessionAction::Kind::kFlowOpened);
}

// On a rail that comes back the way to us may work some time before the way to the peer.
TEST_F(RecvSessionTest, AcknowledgementsDoNotGoOnALinkThatIsNotProved) {
  auto acknowledged_on = [this, message = MessageId{0}, now = Nanos{1}]() mutable {
    session.TakeActions();
    const Chunk chunk{kFlow, message++, 16, 128, 0, nullptr, 16, false};
    std::byte* to = nullptr;
    EXPECT_TRUE(session.Begin(0, kFirst, chunk, &to));
    EXPECT_TRUE(session.Finish(0, kFirst, chunk));
    // Nobody waits for the word, so it goes after a while.
    session.Flush(now);
    session.Flush(now += kNanosPerSecond);
    std::vector<ChannelId> channels;
    for (const SessionAction& action : session.TakeActions())
      if (action.kind == SessionAction::Kind::kSend) channels.push_back(action.channel);
    return channels;
  };
  char buffer[16];
  for (int i = 0; i < 8; ++i) session.Post(kFlow, buffer, sizeof(buffer), 0);
  session.ChannelOpened(0, kFirst, 0);
  EXPECT_EQ(acknowledged_on(), std::vector<ChannelId>{kOobChannel});
  session.Proved(0, kFirst, false);
  EXPECT_EQ(acknowledged_on(), std::vector<ChannelId>{kOobChannel});
  session.Proved(0, kFirst, true);
  EXPECT_EQ(acknowledged_on(), std::vector<ChannelId>{0});
}

// ---- a flow that is closed with buffers posted, where the sender places ----

// The verdicts of one page arrive one after another. Before the last one there is no verdict of a page that never was.
TEST(RecvSessionVerdicts, APageThatTakesAVerdictBackEndsNoLink) {
  RecvSession session({.local_rails = 2, .remote_rails = 2, .peer = "peer"}, 0);
  session.OobUp(0);
  session.RemoteVerdict(0, true, 0);
  for (const LinkId link : {0, 1}) {
    ASSERT_EQ(session.Greet(link, kFirst, static_cast<uint16_t>(link), static_cast<uint16_t>(link), 0), RecvSession::Admission::kAccepted);
    session.ChannelOpened(link, kFirst, 0);
    session.Proved(link, kFirst, true);
  }
  session.TakeActions();
  for (const uint16_t rail : {0, 1}) session.LocalVerdict(rail, false, 0);
  for (const uint16_t rail : {0, 1}) session.RemoteVerdict(rail, false, 0);
  for (const SessionAction& action : session.TakeActions()) EXPECT_NE(action.kind, SessionAction::Kind::kCloseLink);
  // One that stays is in force.
  session.RemoteVerdict(0, true, 0);
  bool is_closed = false;
  for (const SessionAction& action : session.TakeActions()) is_closed |= action.kind == SessionAction::Kind::kCloseLink && action.link == 0;
  EXPECT_TRUE(is_closed);
}

struct RecvSessionCloses : RecvSessionTest {
  RecvSessionCloses() {
    session.ChannelOpened(0, kFirst, 0);
    session.Proved(0, kFirst, true);
    session.Post(kFlow, buffer, sizeof(buffer), 0);
    session.TakeActions();
  }
  // What it says on the link's channel, and whether it ends the link.
  std::vector<Frame> SentFrames() {
    std::vector<Frame> sent;
    for (const SessionAction& action : session.TakeActions()) {
      if (action.kind == SessionAction::Kind::kSend && action.channel == 0) sent.push_back(action.frame);
      closed += action.kind == SessionAction::Kind::kCloseLink;
    }
    return sent;
  }
  void Receive(const Frame& frame, ChannelId channel = 0) { session.Receive(channel, frame, 1); }

  char buffer[16];
  int closed = 0;
};

TEST_F(RecvSessionCloses, ItsBuffersAreTheJobsWhenThePeerHasAnsweredOnTheLink) {
  session.CloseFlow(kFlow, {{0, kFirst, true}}, 0);
  EXPECT_TRUE(session.retiring().contains(kFlow));
  EXPECT_EQ(TypeOf(SentFrames().at(0)), FrameType::kBye);
  Receive(frames::ByeAck{.flow = kFlow}, kOobChannel);
  const std::vector<Frame> sent = SentFrames();
  ASSERT_EQ(sent.size(), 1u);
  ASSERT_EQ(TypeOf(sent[0]), FrameType::kPing);
  // What is on the way goes nowhere else.
  const Chunk chunk{kFlow, 0, 16, 128, 0, nullptr, 16, false};
  EXPECT_EQ(session.Placed(0, kFirst, chunk), RecvSession::Arrival::kPlaced);
  FlowId flow = 0;
  MessageId through = 9;
  EXPECT_TRUE(session.FindFlow(kFlow, 16, &flow, &through));
  EXPECT_EQ(flow, kFlow);
  EXPECT_EQ(through, 0u);
  Receive(frames::Pong{.number = std::get<frames::Ping>(sent[0]).number + 1});
  EXPECT_TRUE(session.retiring().contains(kFlow));
  EXPECT_FALSE(session.idle());
  Receive(frames::Pong{.number = std::get<frames::Ping>(sent[0]).number});
  EXPECT_FALSE(session.retiring().contains(kFlow));
  EXPECT_EQ(session.Placed(0, kFirst, chunk), RecvSession::Arrival::kLate);
  session.Tick(kNanosPerSecond);
  SentFrames();
  EXPECT_EQ(closed, 0) << "the link goes on";
}

TEST_F(RecvSessionCloses, APeerThatDoesNotAnswerLosesTheLink) {
  session.CloseFlow(kFlow, {{0, kFirst, true}}, 0);
  session.Tick(249 * kNanosPerMs);
  SentFrames();
  EXPECT_EQ(closed, 0);
  session.Tick(250 * kNanosPerMs);
  SentFrames();
  EXPECT_EQ(closed, 1);
  EXPECT_TRUE(session.retiring().contains(kFlow));
  session.LinkClosed(0, kFirst, false, 0);
  EXPECT_TRUE(session.retiring().contains(kFlow)) << "it may still be written";
  session.LinkClosed(0, kFirst, true, 0);
  EXPECT_FALSE(session.retiring().contains(kFlow));
}

TEST_F(RecvSessionCloses, ALinkThatCannotBeAskedEnds) {
  session.CloseFlow(kFlow, {{0, kFirst, false}}, 0);
  SentFrames();
  EXPECT_EQ(closed, 1);
  session.LinkClosed(0, kFirst, true, 0);
  EXPECT_FALSE(session.retiring().contains(kFlow));
}

// One that ends for another reason is waited for, and no other.
TEST_F(RecvSessionCloses, ALinkThatIsEndingIsWaitedForIfItMayWrite) {
  session.LinkTrouble(0, kFirst, plan::EvidenceCause::kLinkDown, 0);
  session.CloseFlow(kFlow, {{0, kFirst, false}}, 0);
  EXPECT_TRUE(session.retiring().contains(kFlow));
  session.Receive(kOobChannel, frames::FlowOpen{.flow = kFlow + 1}, 0);
  session.AcceptFlow(kFlow + 1, 0);
  session.CloseFlow(kFlow + 1, {}, 0);
  EXPECT_FALSE(session.retiring().contains(kFlow + 1));
  session.LinkClosed(0, kFirst, true, 0);
  EXPECT_FALSE(session.retiring().contains(kFlow));
}

// ---- the end of an incarnation ----

struct Fenced : RecvSessionTest {
  Fenced() { std::ignore = session.TakeActions(); }
  void AskFence(Incarnation incarnation) { session.Receive(kOobChannel, frames::Fence{.link = 0, .incarnation = incarnation}, 0); }
  // The incarnations that are answered now, and whether the link is to be closed.
  struct Asked {
    std::vector<Incarnation> fenced;
    bool close = false;
  };
  Asked Take() {
    Asked asked;
    for (const SessionAction& action : session.TakeActions()) {
      asked.close |= action.kind == SessionAction::Kind::kCloseLink;
      const auto* const fenced = std::get_if<frames::Fenced>(&action.frame);
      if (action.kind == SessionAction::Kind::kSend && fenced != nullptr) asked.fenced.push_back(fenced->incarnation);
    }
    return asked;
  }
  // Of the first message, which one link begins to write and nobody finishes.
  bool BeginChunk(Incarnation incarnation) {
    if (session.Post(kFlow, buffer, sizeof(buffer), 0) != 0) return false;
    std::byte* to = nullptr;
    return session.Begin(0, incarnation, Chunk{kFlow, 0, 16, 128, 0, nullptr, 16, false}, &to);
  }
  char buffer[16];
};

TEST_F(Fenced, IsAnsweredWhenTheLinkIsClosedAndNotBefore) {
  AskFence(kFirst);
  const Asked asked = Take();
  EXPECT_TRUE(asked.close);
  EXPECT_TRUE(asked.fenced.empty());
  session.Tick(kNanosPerSecond);
  EXPECT_TRUE(Take().fenced.empty());
  session.LinkClosed(0, kFirst, true, 0);
  EXPECT_EQ(Take().fenced, std::vector<Incarnation>{kFirst});
}

TEST_F(Fenced, IsWithheldWhileTheLinkCannotBeClosedAndWrittenWhenItIs) {
  AskFence(kFirst);
  std::ignore = Take();
  session.LinkClosed(0, kFirst, false, 0);
  AskFence(kFirst);
  EXPECT_TRUE(Take().fenced.empty());
  EXPECT_EQ(session.Greet(0, kFirst + 1, 0, 0, 0), RecvSession::Admission::kLater);
  session.LinkClosed(0, kFirst, true, 0);
  EXPECT_EQ(Take().fenced, std::vector<Incarnation>{kFirst});
}

TEST_F(Fenced, ReportsWhatHasArrived) {
  ASSERT_TRUE(BeginChunk(kFirst));
  AskFence(kFirst);
  std::byte* to = nullptr;
  EXPECT_FALSE(session.Begin(0, kFirst, Chunk{kFlow, 0, 16, 128, 0, nullptr, 16, false}, &to)) << "an ending link writes no more";
  std::ignore = session.TakeActions();
  session.LinkClosed(0, kFirst, true, 0);
  for (const SessionAction& action : session.TakeActions()) {
    const auto* const fenced = std::get_if<frames::Fenced>(&action.frame);
    if (action.kind != SessionAction::Kind::kSend || fenced == nullptr) continue;
    ASSERT_EQ(fenced->arrivals.size(), 1u);
    for (const MessageArrivals& partial : fenced->arrivals[0].partial) EXPECT_EQ(partial.placed, std::vector<bool>{false});
    return;
  }
  FAIL() << "not answered";
}

TEST_F(Fenced, BarsAnIncarnationThatNeverCame) {
  AskFence(kFirst + 3);
  EXPECT_TRUE(Take().close) << "the one that is up was given up before it";
  session.LinkClosed(0, kFirst, true, 0);
  EXPECT_EQ(Take().fenced, std::vector<Incarnation>{kFirst + 3});
  EXPECT_EQ(session.Greet(0, kFirst + 2, 0, 0, 0), RecvSession::Admission::kRefused);
  EXPECT_EQ(session.Greet(0, kFirst + 3, 0, 0, 0), RecvSession::Admission::kRefused);
  EXPECT_EQ(session.Greet(0, kFirst + 4, 0, 0, 0), RecvSession::Admission::kAccepted);
}

TEST_F(Fenced, ANewerOfferClosesTheOneBeforeAndWaitsForIt) {
  EXPECT_EQ(session.Greet(0, kFirst + 1, 0, 0, 0), RecvSession::Admission::kLater);
  EXPECT_TRUE(Take().close);
  EXPECT_EQ(session.Greet(0, kFirst + 1, 0, 0, 0), RecvSession::Admission::kLater);
  EXPECT_FALSE(Take().close) << "it is being closed already";
  session.LinkClosed(0, kFirst, true, 0);
  EXPECT_TRUE(Take().fenced.empty()) << "nobody has asked";
  EXPECT_EQ(session.Greet(0, kFirst + 1, 0, 0, 0), RecvSession::Admission::kAccepted);
}

TEST_F(Fenced, OwnTroubleIsSentOnAllChannelsWhenTheLinkIsClosed) {
  session.LinkTrouble(0, kFirst, plan::EvidenceCause::kLinkDown, 0);
  EXPECT_TRUE(Take().fenced.empty());
  session.LinkClosed(0, kFirst, true, 0);
  EXPECT_EQ(Take().fenced, std::vector<Incarnation>{kFirst});
  session.Tick(kNanosPerSecond);
  EXPECT_EQ(Take().fenced, std::vector<Incarnation>{kFirst}) << "until the initiator confirms it";
}

// A probe that was answered before the peer was heard last says nothing of it.
TEST_F(RecvSessionTest, ProbesHaveTheTimeOfTheLastFrame) {
  char buffer[16] = {};
  session.Post(kFlow, buffer, sizeof(buffer), 0);
  const Nanos last_received = kNanosPerSecond;
  session.Receive(kOobChannel, frames::Ping{}, last_received);
  session.OobDown(last_received);
  session.TakeActions();
  int probes = 0;
  for (Nanos now = last_received; now < last_received + 5 * kNanosPerSecond; now += 10 * kNanosPerMs) {
    session.Tick(now);
    for (const SessionAction& action : session.TakeActions()) {
      if (action.kind != SessionAction::Kind::kProbePeer) continue;
      EXPECT_EQ(action.last_received, last_received);
      ++probes;
    }
  }
  EXPECT_GE(probes, 10);
}

TEST(RecvSession, HoldsReportsBackOnlyWhileAllRailsAreUp) {
  RecvSession session({.local_rails = 2, .remote_rails = 2, .peer = "peer"}, 0);
  auto reports_after_a_message = [&session, message = MessageId{0}]() mutable {
    session.Flush(1);
    session.TakeActions();
    const Chunk chunk{kFlow, message++, 16, 128, 0, nullptr, 16, false};
    std::byte* to = nullptr;
    EXPECT_TRUE(session.Begin(0, kFirst, chunk, &to));
    EXPECT_TRUE(session.Finish(0, kFirst, chunk));
    session.Flush(1);
    return session.TakeActions().size();
  };
  session.OobUp(0);
  session.Receive(kOobChannel, frames::FlowOpen{.flow = kFlow}, 0);
  session.AcceptFlow(kFlow, 0);
  ASSERT_EQ(session.Greet(0, kFirst, 0, 0, 0), RecvSession::Admission::kAccepted);
  char buffer[16];
  for (int i = 0; i < 8; ++i) session.Post(kFlow, buffer, sizeof(buffer), 0);
  EXPECT_EQ(reports_after_a_message(), 1u);
  ASSERT_EQ(session.Greet(1, kFirst, 1, 1, 0), RecvSession::Admission::kAccepted);
  EXPECT_EQ(reports_after_a_message(), 0u);
  session.LinkTrouble(1, kFirst, plan::EvidenceCause::kSocketError, 0);
  EXPECT_EQ(reports_after_a_message(), 1u);
}

}  // namespace
}  // namespace r2cc::net
