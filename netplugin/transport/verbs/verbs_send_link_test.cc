#include "netplugin/transport/verbs/verbs_send_link.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "netplugin/flow/tuning.h"
#include "netplugin/link/link_progress.h"
#include "netplugin/transport/verbs/fake_links.h"

namespace r2cc::net::verbs {
namespace {

using plan::EvidenceCause;
using Room = SendLink::Room;

// So fast that the bound on bulk is far away.
constexpr LinkAdvice kFast{.rate_bytes_per_s = 100e9};

class VerbsSendLinkTest : public FakeLinks {
 protected:
  uint64_t completions() const { return ends_[0].verbs->counts().completions; }
  uint64_t sends() const { return ends_[0].verbs->counts().sends; }
  // What a session makes of its samples.
  LinkProgress Watch(Nanos time) {
    constexpr Nanos kEvery = 25 * kNanosPerMs;
    LinkProgress progress;
    for (const Nanos end = time_.now() + time; time_.now() < end; LookFor(kEvery)) progress.Sample(send_->Measure().paths, time_.now());
    progress.Sample(send_->Measure().paths, time_.now());
    return progress;
  }
};

TEST_F(VerbsSendLinkTest, AChunkGoesWhereItIsGrantedOnceItIsStarted) {
  OpenSend();
  AttachRecv();
  send_->Answered(true, receiver_.answers[0]);
  time_.RunFor(kNanosPerMs);
  sender_.chunks.push_back(ChunkOf(2));
  EXPECT_EQ(send_->Pump(8, true), Room::kNone) << "not started";
  EXPECT_EQ(sender_.chunks.size(), 1u);
  send_->Prove();
  LookFor(5 * kNanosPerMs);
  send_->Start();
  std::fill(ends_[0].bytes.begin(), ends_[0].bytes.end(), std::byte{9});
  send_->Pump(8, true);
  LookFor(5 * kNanosPerMs);
  ASSERT_EQ(receiver_.placed.size(), 1u);
  EXPECT_EQ(receiver_.placed[0].message, 2u);
  EXPECT_EQ(receiver_.placed[0].bytes, kMessageBytes);
  const auto& to = ends_[1].bytes;
  EXPECT_EQ(std::count(to.begin(), to.end(), std::byte{9}), kMessageBytes);
  EXPECT_EQ(to[2 * kMessageBytes], std::byte{9});
  EXPECT_EQ(ends_[0].carried.value(), kMessageBytes);
}

// An acknowledgement says no less than the device would: nobody asks that then.
TEST_F(VerbsSendLinkTest, AcknowledgedWritesNeedFewCompletions) {
  Connect();
  send_->Advise(kFast);
  const auto before = completions();
  constexpr MessageId kMessages = 10 * tuning::kSignalEvery;
  for (MessageId message = 0; message < kMessages; ++message) {
    sender_.chunks.push_back(ChunkOf(message));
    ASSERT_EQ(send_->Pump(8, true), Room::kNone);
    EXPECT_TRUE(send_->Holds(kFlow));
    LookFor(kNanosPerMs);
    Acknowledge(message + 1);
    LookFor(kNanosPerMs);
    EXPECT_FALSE(send_->Holds(kFlow)) << message;
  }
  EXPECT_EQ(receiver_.placed.size(), kMessages);
  // Ten, and those of its words on what it has read of the other end's records.
  EXPECT_LE(completions() - before, 10u + kMessages / (kSlots / 2));
  EXPECT_EQ(send_->Measure().delivered_bytes, kMessages * kMessageBytes);
  EXPECT_TRUE(sender_.troubles.empty() && receiver_.troubles.empty());
}

// Without an acknowledgement, too, whoever has no room is told when he has.
TEST_F(VerbsSendLinkTest, ALinkThatIsFullIsSignaled) {
  Connect();
  for (MessageId message = 0; message < 10; ++message) sender_.chunks.push_back(ChunkOf(message));
  // The rate is not known: two at a time.
  EXPECT_EQ(send_->Pump(8, true), Room::kNone);
  EXPECT_EQ(sender_.chunks.size(), 8u);
  for (int round = 0; round < 4; ++round) {
    const int ready = sender_.ready;
    LookFor(kNanosPerMs);
    EXPECT_GT(sender_.ready, ready);
    send_->Pump(8, true);
  }
  EXPECT_TRUE(sender_.chunks.empty());
}

// The flow was closed while the device reads: its end is told, and the link goes on.
TEST_F(VerbsSendLinkTest, ChunksOfAClosedFlowAreReleasedByTheDevice) {
  Connect();
  send_->Advise(kFast);
  for (MessageId message = 0; message < 5; ++message) sender_.chunks.push_back(ChunkOf(message));
  send_->Pump(64, true);
  EXPECT_TRUE(send_->Holds(kFlow));
  sender_.open = false;
  LookFor(5 * kNanosPerMs);
  EXPECT_TRUE(send_->Holds(kFlow)) << "nobody is told of its end";
  EXPECT_TRUE(send_->Release(kFlow));
  LookFor(kNanosPerMs);
  EXPECT_FALSE(send_->Holds(kFlow));
  EXPECT_TRUE(sender_.troubles.empty());
}

// The acknowledgement may come on another link: the last one of a burst is signaled.
TEST_F(VerbsSendLinkTest, TheEndOfABurstIsSignaledWhileChunksAreStriped) {
  Connect();
  LinkAdvice advice = kFast;
  advice.spread = true;
  send_->Advise(advice);
  for (MessageId message = 0; message < 5; ++message) sender_.chunks.push_back(ChunkOf(message));
  const auto before = completions();
  send_->Pump(64, true);
  LookFor(kNanosPerMs);
  EXPECT_EQ(completions() - before, 1u);
  EXPECT_FALSE(send_->Holds(kFlow));
  EXPECT_EQ(send_->Measure().delivered_bytes, 5u * kMessageBytes);
}

TEST_F(VerbsSendLinkTest, AQueuePairThatReportsNothingStallsWhateverItSends) {
  for (const FakeStall stall : {FakeStall::kSendsNothing, FakeStall::kCompletesNothing}) {
    SCOPED_TRACE(static_cast<int>(stall));
    if (send_ == nullptr) Connect();
    send_->Advise(kFast);
    const size_t placed = receiver_.placed.size();
    fabric_.StallDevice(0, "mlx5_0", stall);
    sender_.chunks.push_back(ChunkOf(placed));
    ASSERT_EQ(send_->Pump(8, true), Room::kNone);
    const Nanos posted = time_.now();
    const LinkProgress progress = Watch(250 * kNanosPerMs);
    EXPECT_GE(progress.stall().since, posted);
    EXPECT_LE(progress.stall().since, posted + 75 * kNanosPerMs) << "one sample sees it, one asks, one sees no answer";
    EXPECT_TRUE(progress.stall().confirmed);
    EXPECT_EQ(progress.Diagnose(false), (LinkFault{EvidenceCause::kStalled, plan::StalledDetail(1, 1)}));
    EXPECT_EQ(receiver_.placed.size(), placed + (stall == FakeStall::kCompletesNothing));
    fabric_.StallDevice(0, "mlx5_0", FakeStall::kNone);
    LookFor(kNanosPerSecond);
  }
}

// Soft-RoCE never counts down a count of 7, and no completion says an error. Nor does one of a device whose peer has no receive.
TEST_F(VerbsSendLinkTest, RetriesWithoutEndAreAStallAndNoError) {
  fabric_.device(0, "mlx5_0")->info.driver = "rdma_rxe";
  ends_[0].shared.site.retry_cnt = 7;
  Connect();
  send_->Advise(kFast);
  fabric_.SetSilent({1, "mlx5_0"}, true);
  sender_.chunks.push_back(ChunkOf(0));
  send_->Pump(8, true);
  EXPECT_TRUE(Watch(5 * kNanosPerSecond).stall().confirmed);
  EXPECT_TRUE(sender_.troubles.empty());
}

TEST_F(VerbsSendLinkTest, ACounterThatRunsOutIsSilence) {
  Connect();
  fabric_.SetSilent({1, "mlx5_0"}, true);
  sender_.chunks.push_back(ChunkOf(0));
  send_->Pump(8, true);
  LookFor(2 * kNanosPerSecond);
  EXPECT_EQ(sender_.troubles, std::vector{EvidenceCause::kSilence});
}

// The device has it at the other end. When that is acknowledged is the peer's affair, which may be stopped.
TEST_F(VerbsSendLinkTest, AnAcknowledgementThatIsLateIsNoStall) {
  Connect();
  send_->Advise(kFast);
  sender_.chunks.push_back(ChunkOf(0));
  send_->Pump(8, true);
  const auto before = sends();
  EXPECT_EQ(Watch(5 * kNanosPerSecond).stall().since, 0);
  EXPECT_EQ(sends() - before, 1u) << "it was asked once";
}

TEST_F(VerbsSendLinkTest, ALargeRequestOnASlowRailIsNoStall) {
  Connect();
  send_->Advise({.rate_bytes_per_s = 10'000});
  fabric_.StallDevice(0, "mlx5_0", FakeStall::kSendsNothing);
  sender_.chunks.push_back(ChunkOf(0));
  send_->Pump(8, true);
  EXPECT_FALSE(Watch(kNanosPerSecond).stall().confirmed);
  EXPECT_TRUE(Watch(2 * kNanosPerSecond).stall().confirmed);
}

TEST_F(VerbsSendLinkTest, NothingIsReportedOfAnIncarnationThatIsNotProved) {
  OpenSend();
  EXPECT_TRUE(send_->Measure().paths.empty());
}

TEST_F(VerbsSendLinkTest, NoMoreThanItWasAllowedIsPulled) {
  Connect();
  send_->Advise(kFast);
  for (MessageId message = 0; message < 10; ++message) sender_.chunks.push_back(ChunkOf(message));
  EXPECT_EQ(send_->Pump(3, true), Room::kLeft);
  EXPECT_EQ(sender_.chunks.size(), 7u);
  EXPECT_EQ(send_->Pump(7, true), Room::kLeft);
  EXPECT_EQ(send_->Pump(1, true), Room::kNone) << "there is nothing";
}

// A receiver that looks at nothing is sent no more than it has receives for.
TEST_F(VerbsSendLinkTest, CreditBoundsWhatIsOnItsWay) {
  Connect();
  send_->Advise(kFast);
  sender_.chunks.assign(3 * kReceives, ChunkOf(0));
  for (int i = 0; i < 20; ++i) {
    send_->Pump(1000, true);
    time_.RunFor(kNanosPerMs);
    ends_[0].port->Poll();
  }
  const size_t left = sender_.chunks.size();
  EXPECT_GE(left, 2 * kReceives);
  EXPECT_TRUE(sender_.troubles.empty());
  for (int i = 0; i < 20; ++i) {
    LookFor(kNanosPerMs);
    send_->Pump(1000, true);
  }
  EXPECT_TRUE(sender_.chunks.empty());
}

TEST_F(VerbsSendLinkTest, AMessageOfManyChunksHasATailRecord) {
  Connect();
  send_->Advise(kFast);
  for (uint32_t index = 0; index < 4; ++index) sender_.chunks.push_back(ChunkOf(1, kMessageBytes / 4, index));
  const auto before = sends();
  send_->Pump(8, true);
  EXPECT_EQ(sends() - before, 8u);
  LookFor(5 * kNanosPerMs);
  ASSERT_EQ(receiver_.placed.size(), 4u);
  for (uint32_t index = 0; index < 4; ++index) {
    EXPECT_EQ(receiver_.placed[index].index, index);
    EXPECT_EQ(receiver_.placed[index].message_bytes, kMessageBytes);
    EXPECT_EQ(receiver_.placed[index].chunk_bytes, kMessageBytes / 4);
  }
}

// 64 messages later the ticket is the same, and so is the place of its record.
TEST_F(VerbsSendLinkTest, ATailRecordThatIsStillWantedIsNotWrittenOver) {
  Connect();
  send_->Advise(kFast);
  sender_.chunks = {ChunkOf(1, kMessageBytes / 2), ChunkOf(1 + kMessagesPerFlow, kMessageBytes / 2)};
  EXPECT_EQ(send_->Pump(8, true), Room::kNone);
  EXPECT_TRUE(send_->busy());
  EXPECT_TRUE(sender_.chunks.empty());
  LookFor(5 * kNanosPerMs);
  EXPECT_EQ(receiver_.placed.size(), 1u);
  const int ready = sender_.ready;
  Acknowledge(2);
  LookFor(5 * kNanosPerMs);
  EXPECT_GT(sender_.ready, ready);
  send_->Pump(0, true);
  EXPECT_FALSE(send_->busy());
  LookFor(5 * kNanosPerMs);
  EXPECT_EQ(receiver_.placed.size(), 2u);
}

TEST_F(VerbsSendLinkTest, AChunkWithoutAKeyIsTrouble) {
  Connect();
  sender_.has_key = false;
  sender_.chunks.push_back(ChunkOf(0));
  send_->Pump(8, true);
  EXPECT_EQ(sender_.troubles, std::vector{EvidenceCause::kSocketError});
  EXPECT_TRUE(receiver_.placed.empty());
}

// Its bytes are the job's again when the link is closed, not before.
TEST_F(VerbsSendLinkTest, AClosedFlowsBufferIsHeldUntilItsWriteHasEnded) {
  Connect();
  send_->Advise(kFast);
  sender_.chunks.push_back(ChunkOf(0));
  send_->Pump(8, true);
  sender_.open = false;
  LookFor(5 * kNanosPerMs);
  EXPECT_TRUE(send_->Holds(kFlow));
  EXPECT_FALSE(send_->Holds(kFlow + 1));
  EXPECT_FALSE(send_->Close());
  time_.RunFor(kNanosPerSecond);
  EXPECT_EQ(sender_.closed, std::vector<bool>{true});
}

TEST_F(VerbsSendLinkTest, ARefusedOfferIsTrouble) {
  OpenSend();
  send_->Answered(false, {});
  send_->Answered(true, {});  // once is enough
  EXPECT_EQ(sender_.troubles, std::vector{EvidenceCause::kPeerFenced});
}

TEST_F(VerbsSendLinkTest, AnAnswerThatIsNoneIsTrouble) {
  OpenSend();
  send_->Answered(true, {1, 2, 3});
  EXPECT_EQ(sender_.troubles, std::vector{EvidenceCause::kGarbled});
}

class AdaptiveSendLinkTest : public FakeLinks {
 protected:
  AdaptiveSendLinkTest() : FakeLinks(true) {}
};

TEST_F(AdaptiveSendLinkTest, EveryChunkHasATailRecord) {
  Connect();
  sender_.chunks.push_back(ChunkOf(3));
  const auto before = ends_[0].verbs->counts().sends;
  send_->Pump(8, true);
  EXPECT_EQ(ends_[0].verbs->counts().sends - before, 2u);
  LookFor(5 * kNanosPerMs);
  ASSERT_EQ(receiver_.placed.size(), 1u);
  EXPECT_EQ(receiver_.placed[0].message_bytes, kMessageBytes);
}

}  // namespace
}  // namespace r2cc::net::verbs
