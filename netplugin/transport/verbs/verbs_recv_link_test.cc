#include "netplugin/transport/verbs/verbs_recv_link.h"

#include <gtest/gtest.h>

#include "netplugin/transport/verbs/fake_links.h"

namespace r2cc::net::verbs {
namespace {

using plan::EvidenceCause;

class VerbsRecvLinkTest : public FakeLinks {
 protected:
  void Send(MessageId message) {
    sender_.chunks.push_back(ChunkOf(message));
    send_->Pump(8, true);
    LookFor(2 * kNanosPerMs);
  }
};

TEST_F(VerbsRecvLinkTest, ACompletedChunkHasBeenPlaced) {
  Connect();
  receiver_.placed_through = 70;
  Send(75);
  ASSERT_EQ(receiver_.placed.size(), 1u);
  EXPECT_EQ(receiver_.placed[0].flow, kFlow);
  EXPECT_EQ(receiver_.placed[0].message, 75u);
  EXPECT_EQ(receiver_.placed[0].message_bytes, kMessageBytes);
  EXPECT_EQ(ends_[1].carried.value(), kMessageBytes);
}

TEST_F(VerbsRecvLinkTest, AnOfferThatComesTwiceIsAnsweredTwice) {
  OpenSend();
  AttachRecv();
  bool control = false;
  EXPECT_TRUE(Attach(sender_.offers[0], &control));
  EXPECT_FALSE(control) << "it is open already";
  ASSERT_EQ(receiver_.answers.size(), 2u);
  EXPECT_EQ(receiver_.answers[0], receiver_.answers[1]);
}

TEST_F(VerbsRecvLinkTest, AnotherOfferIsRefused) {
  OpenSend();
  AttachRecv();
  Offer other;
  ASSERT_TRUE(Decode(sender_.offers[0], &other));
  other.psn ^= 1;
  bool control = false;
  EXPECT_FALSE(Attach(Encode(other), &control));
  EXPECT_EQ(receiver_.answers.size(), 1u);
}

TEST_F(VerbsRecvLinkTest, AConnectionOfAnotherTransportIsRefused) {
  recv_ = ends_[1].port->NewRecv(kLinkName, &receiver_, &ends_[1].carried);
  auto connection = std::make_unique<Connection>();
  bool control = false;
  std::string reason;
  EXPECT_FALSE(recv_->Attach({}, {}, &connection, &control, &reason));
  EXPECT_FALSE(reason.empty());
  EXPECT_NE(connection, nullptr) << "the caller's, to hang up";
}

TEST_F(VerbsRecvLinkTest, AChunkOfNoFlowIsTrouble) {
  Connect();
  receiver_.open = false;
  Send(0);
  EXPECT_EQ(receiver_.troubles, std::vector{EvidenceCause::kGarbled});
  EXPECT_TRUE(receiver_.placed.empty());
}

TEST_F(VerbsRecvLinkTest, AChunkThatIsRefusedIsTrouble) {
  Connect();
  receiver_.accepts = false;
  Send(0);
  EXPECT_EQ(receiver_.troubles, std::vector{EvidenceCause::kGarbled});
}

// The session has given the incarnation up, and its close has not begun yet.
TEST_F(VerbsRecvLinkTest, AnEndedIncarnationGetsNoChunk) {
  Connect();
  receiver_.alive = false;
  Send(0);
  EXPECT_TRUE(receiver_.placed.empty());
  EXPECT_TRUE(receiver_.troubles.empty());
  EXPECT_FALSE(recv_->Poll(kFlow));
}

TEST_F(VerbsRecvLinkTest, PollReturnsWhetherAChunkCame) {
  Connect();
  EXPECT_FALSE(recv_->Poll(kFlow));
  sender_.chunks.push_back(ChunkOf(0));
  send_->Pump(8, true);
  time_.RunFor(kNanosPerMs);
  EXPECT_TRUE(recv_->Poll(kFlow));
  EXPECT_FALSE(recv_->Poll(kFlow));
}

// The sender's device may write there until the link has ended.
TEST_F(VerbsRecvLinkTest, AFlowIsForgottenWhenNothingOfItMayBePlaced) {
  Connect();
  EXPECT_FALSE(recv_->Forget(kFlow));
  receiver_.may_be_placed = false;
  EXPECT_TRUE(recv_->Forget(kFlow));
  EXPECT_TRUE(recv_->orders());
  EXPECT_FALSE(recv_->Close());
  EXPECT_FALSE(recv_->orders()) << "nothing is heard on it any more";
  EXPECT_TRUE(recv_->Forget(kFlow)) << "a clean flow does not wait for a link that ends for another reason";
  receiver_.may_be_placed = true;
  EXPECT_FALSE(recv_->Forget(kFlow)) << "it has not ended yet";
  time_.RunFor(kNanosPerSecond);
  EXPECT_EQ(receiver_.closed, std::vector<bool>{true});
}

// An initiator has no grants to tell.
TEST_F(VerbsRecvLinkTest, AGrantOfAnInitiatorIsNothing) {
  Connect();
  send_->control()->Queue(FlowReport{.flow = kFlow, .placed_through = 3});
  EXPECT_TRUE(send_->control()->Flush());
  LookFor(2 * kNanosPerMs);
  EXPECT_TRUE(receiver_.frames.empty());
  EXPECT_TRUE(receiver_.troubles.empty());
}

TEST_F(VerbsRecvLinkTest, AFlushIsReported) {
  Connect();
  const Buffer at{ends_[1].bytes.data(), &ends_[1].memory};
  for (MessageId message = 0; message < 3; ++message) recv_->Flush({.flow = kFlow, .message = message, .round = 1}, at);
  EXPECT_TRUE(receiver_.flushed.empty()) << "not within the call";
  time_.RunFor(kNanosPerMs);
  recv_->Poll(kFlow);
  time_.RunFor(kNanosPerMs);
  EXPECT_TRUE(recv_->Poll(kFlow)) << "something came of it";
  EXPECT_EQ(receiver_.flushed, (std::vector<MessageId>{0, 1, 2}));
  EXPECT_TRUE(receiver_.troubles.empty());
  EXPECT_FALSE(recv_->Poll(kFlow));
}

// The port's own look, as a tick's, does it as well.
TEST_F(VerbsRecvLinkTest, APortLooksAtItsLinksFlushes) {
  Connect();
  recv_->Flush({.flow = kFlow, .message = 5, .round = 1}, {ends_[1].bytes.data(), &ends_[1].memory});
  LookFor(2 * kNanosPerMs);
  EXPECT_EQ(receiver_.flushed, std::vector<MessageId>{5});
}

// Another link brings the bytes again.
TEST_F(VerbsRecvLinkTest, MemoryThatWasRevokedCannotBeFlushed) {
  Connect();
  ends_[1].shared.regions.Unregister(ends_[1].memory, 0);
  recv_->Flush({.flow = kFlow, .message = 0, .round = 1}, {ends_[1].bytes.data(), &ends_[1].memory});
  EXPECT_EQ(receiver_.troubles, std::vector{EvidenceCause::kLinkDown});
  LookFor(2 * kNanosPerMs);
  EXPECT_TRUE(receiver_.flushed.empty());
}

TEST_F(VerbsRecvLinkTest, AFlushThatIsOutstandingKeepsNoLink) {
  Connect();
  recv_->Flush({.flow = kFlow, .message = 0, .round = 1}, {ends_[1].bytes.data(), &ends_[1].memory});
  EXPECT_FALSE(recv_->Close());
  time_.RunFor(kNanosPerSecond);
  EXPECT_EQ(receiver_.closed, std::vector<bool>{true});
  EXPECT_TRUE(receiver_.flushed.empty());
  EXPECT_EQ(fabric_.hangs(), 0);
}

}  // namespace
}  // namespace r2cc::net::verbs
