#include "netplugin/transport/recv_peer.h"

#include <gtest/gtest.h>

#include <deque>
#include <utility>
#include <vector>

#include "netplugin/transport/fake_ends.h"

namespace r2cc::net {
namespace {

class RecvPeerTest : public testing::Test {
 protected:
  static Hello MakeHello() {
    Hello hello{.session = 1, .process = 2, .node = "there"};
    hello.rails = {{.nic = "rail0", .up = true, .endpoints = {{TransportKind::kTcp, {1}}}},
                   {.nic = "rail1", .up = true, .endpoints = {{TransportKind::kTcp, {2}}}}};
    return hello;
  }
  // One more connection of an incarnation of a link. True: it was taken.
  bool Attach(LinkId link, Incarnation incarnation) {
    Hello hello{.kind = ConnectionKind::kLink, .session = 1, .link = link, .local_rail = link, .remote_rail = link};
    hello.incarnation = incarnation;
    std::unique_ptr<Connection> connection = std::make_unique<Connection>();
    reason_.clear();
    const PeerLock lock(*peer_);
    const bool taken = peer_->AttachLink(hello, {.accepted = true}, &connection, &reason_);
    EXPECT_EQ(connection == nullptr, taken) << "a connection that is refused is the caller's";
    return taken;
  }

  FakeClock clock_;
  FakeEndsHost host_{&clock_, 2};
  std::string reason_;
  const std::shared_ptr<RecvPeer> peer_ =
      std::make_shared<RecvPeer>(&host_, MakeHello(), [](FlowId, uint64_t) { return static_cast<Comm*>(nullptr); });
};

// Of a link that cannot be ended: an honest peer has no more connections under way.
TEST_F(RecvPeerTest, ConnectionsThatWaitForTheEndOfALinkAreBounded) {
  constexpr int kMost = 64;
  ASSERT_TRUE(Attach(0, 1));
  FakeRecvLink* const first = host_.ends.receives;
  for (int i = 0; i < kMost; ++i) ASSERT_TRUE(Attach(0, 2)) << i << ": " << reason_;
  EXPECT_FALSE(Attach(0, 2));
  EXPECT_NE(reason_.find("too many connections"), std::string::npos) << reason_;
  EXPECT_TRUE(Attach(1, 1)) << "another link has room of its own";
  EXPECT_TRUE(Attach(0, 3)) << "what waited for an older incarnation is dropped for it";
  for (int i = 1; i < kMost; ++i) ASSERT_TRUE(Attach(0, 3)) << i;
  {
    const PeerLock lock(*peer_);
    first->owner->LinkClosed(first->name, true);
    peer_->RunToCompletion();
  }
  EXPECT_EQ(host_.ends.receives->name.incarnation, 3u);
  EXPECT_EQ(host_.ends.receives->attached.size(), static_cast<size_t>(kMost));
}

// What the peer is told of two flows whose numbers are the same modulo the acceptor's slots.
std::vector<bool> AnswersTo(const Hello& hello, FakeEndsHost* host) {
  std::deque<Comm> comms;
  const auto peer = std::make_shared<RecvPeer>(host, hello, [&comms](FlowId, uint64_t) { return &comms.emplace_back(); });
  std::vector<bool> answers;
  {
    const PeerLock lock(*peer);
    OobOwner* const owner = host->ends.oob->owner;
    peer->AttachOob(hello, {.accepted = true}, std::make_unique<Connection>());
    for (const FlowId flow : {FlowId{1}, FlowId{17}}) {
      owner->OobFrameReceived(frames::FlowOpen{.flow = flow});
      peer->RunToCompletion();
    }
    for (const Frame& frame : host->ends.oob->channel.frames)
      if (const auto* const opened = std::get_if<frames::FlowOpened>(&frame)) answers.push_back(opened->ok);
    peer->CloseFlows();
  }
  return answers;
}

// Only devices that place need slots. An initiator without any picks its numbers freely.
TEST_F(RecvPeerTest, FlowsNeedNoSlotUnlessBothEndsPlace) {
  host_.transport.slots = 16;
  Hello hello = MakeHello();
  EXPECT_EQ(AnswersTo(hello, &host_), (std::vector{true, true}));
  hello.rails[1].endpoints.push_back({TransportKind::kVerbs, {3}});
  EXPECT_EQ(AnswersTo(hello, &host_), (std::vector{true, false}));
}

}  // namespace
}  // namespace r2cc::net
