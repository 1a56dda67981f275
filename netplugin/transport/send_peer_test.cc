#include "netplugin/transport/send_peer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "netplugin/transport/fake_ends.h"

namespace r2cc::net {
namespace {

class SendPeerTest : public testing::Test {
 protected:
  SendPeerTest() {
    const PeerLock lock(*peer_);
    peer_->Open(1, 0, &comm_);
  }
  // The peer answers the greeting.
  void Greet() {
    for (int ticks = 0; !host_.ends.oob->opening; ++ticks) {
      ASSERT_LT(ticks, 1000);
      Tick();
    }
    HelloReply reply{.accepted = true, .node = "there"};
    reply.rails = {{.nic = "rail0", .up = true, .endpoints = {{TransportKind::kTcp, {1}}}}};
    const PeerLock lock(*peer_);
    host_.ends.oob->owner->OobGreeted(reply);
    peer_->RunToCompletion();
  }
  void Lose() {
    const PeerLock lock(*peer_);
    host_.ends.oob->opening = false;
    host_.ends.oob->owner->OobLost(ProbeResult::kSilent);
    peer_->RunToCompletion();
  }
  void Tick() {
    clock_.Advance(10 * kNanosPerMs);
    peer_->Tick();
  }
  void Offer() {
    const PeerLock lock(*peer_);
    host_.ends.sends->owner->Offer(host_.ends.sends->name, {7});
    peer_->RunToCompletion();
  }
  void ReceiveOob(const Frame& frame) {
    const PeerLock lock(*peer_);
    host_.ends.oob->owner->OobFrameReceived(frame);
    peer_->RunToCompletion();
  }
  int Offers() const {
    const auto& frames = host_.ends.oob->channel.frames;
    return static_cast<int>(
        std::count_if(frames.begin(), frames.end(), [](const Frame& of) { return TypeOf(of) == FrameType::kLinkOffer; }));
  }
  Frame Answer() const {
    const LinkName& name = host_.ends.sends->name;
    return frames::LinkAnswer{.link = name.link, .incarnation = name.incarnation, .ok = true};
  }

  FakeClock clock_;
  FakeEndsHost host_{&clock_, 1};
  Comm comm_;
  const std::shared_ptr<SendPeer> peer_ = std::make_shared<SendPeer>(&host_, SendPeer::Target{1, 1, {"10.0.0.2", 1}, true}, 1);
};

TEST_F(SendPeerTest, AnOfferWithoutAnAnswerIsMadeAgainOverTheNextConnection) {
  Greet();
  ASSERT_NE(host_.ends.sends, nullptr);
  Offer();
  EXPECT_EQ(Offers(), 1);
  Lose();
  Greet();
  EXPECT_EQ(Offers(), 2);
  EXPECT_EQ(std::get<frames::LinkOffer>(host_.ends.oob->channel.frames.back()).incarnation, host_.ends.sends->name.incarnation);
}

TEST_F(SendPeerTest, AnOfferThatWasMadeWithoutAConnectionIsMadeOverTheNext) {
  Greet();
  Lose();
  Offer();
  EXPECT_EQ(Offers(), 0);
  Greet();
  EXPECT_EQ(Offers(), 1);
}

TEST_F(SendPeerTest, AnOfferThatWasAnsweredIsMadeOnce) {
  Greet();
  Offer();
  ReceiveOob(Answer());
  Lose();
  Greet();
  EXPECT_EQ(Offers(), 1);
}

TEST_F(SendPeerTest, AnOfferEndsWithItsIncarnation) {
  Greet();
  Offer();
  {
    const PeerLock lock(*peer_);
    host_.ends.sends->owner->Trouble(host_.ends.sends->name, plan::EvidenceCause::kSocketError);
    peer_->RunToCompletion();
  }
  Lose();
  Greet();
  EXPECT_EQ(Offers(), 1);
}

}  // namespace
}  // namespace r2cc::net
