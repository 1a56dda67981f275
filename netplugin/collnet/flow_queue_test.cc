#include "netplugin/collnet/flow_queue.h"

#include <gtest/gtest.h>

#include <optional>

#include "netplugin/collnet/fake_group.h"

namespace r2cc::collnet {
namespace {

using Kind = FlowQueue::Request::Kind;

struct FlowQueueTest : testing::Test {
  // Both ends have their flow.
  void Open() {
    sends.SetFlow(from.port(), from.Open(1));
    receives.SetFlow(to.port(), *to.Accept());
  }
  Bytes Message(int number) { return Bytes(8, static_cast<std::byte>(number)); }

  FakeNetwork network{1};
  FakeGroup from{&network, 0}, to{&network, 1};
  FlowQueue sends{FlowQueue::Direction::kSends}, receives{FlowQueue::Direction::kReceives};
};

TEST_F(FlowQueueTest, RequestsWaitForTheFlowAndForRoomAndAreDoneInOrder) {
  constexpr int kMessages = 3 * FakeGroup::kRoom;
  for (int i = 0; i < kMessages; ++i) {
    sends.AddOwn(Kind::kMessage, Message(i));
    receives.AddOwn(Kind::kMessage, Bytes(8));
  }
  sends.Post();
  EXPECT_FALSE(sends.TakeDone().has_value()) << "there is no flow";
  EXPECT_EQ(sends.Error(), "");
  Open();
  for (int turns = 0, sent = 0, received = 0; received < kMessages; ++turns) {
    ASSERT_LT(turns, 1000);
    sends.Post();
    receives.Post();
    EXPECT_LE(network.flows().front()->sends.size(), FakeGroup::kRoom);
    network.Move();
    while (sends.TakeDone().has_value()) ++sent;
    while (const auto done = receives.TakeDone()) EXPECT_EQ(done->own, Message(received++));
    EXPECT_EQ(sent, received);
  }
  EXPECT_TRUE(sends.idle());
  EXPECT_TRUE(receives.idle());
}

TEST_F(FlowQueueTest, AQueueTakesAFlowOverBehindRequestsThatWereDone) {
  sends.SetFlow(from.port(), from.Open(1));
  sends.AddOwn(Kind::kGreeting, Message(1));
  sends.AddOwn(Kind::kMessage, Message(2));
  sends.Post();
  const net::FlowRef flow = *to.Accept();
  FlowQueue queue(FlowQueue::Direction::kReceives);
  queue.SetFlow(to.port(), flow);
  queue.AddOwn(Kind::kGreeting, Bytes(8));
  receives.AddOwn(Kind::kMessage, Bytes(8));
  for (std::optional<FlowQueue::Request> greeting; !greeting.has_value(); greeting = queue.TakeDone()) {
    queue.Post();
    network.Move();
  }
  receives.SetFlow(to.port(), flow, 1);
  std::optional<FlowQueue::Request> message;
  for (int turns = 0; !message.has_value(); ++turns) {
    ASSERT_LT(turns, 1000);
    message = receives.TakeDone();
    network.Move();
  }
  EXPECT_EQ(message->own, Message(2));
}

TEST_F(FlowQueueTest, AWeightHoldsAlsoForAFlowThatComesLater) {
  sends.SetWeight(3);
  Open();
  EXPECT_EQ(network.flows().front()->weight, 3);
  sends.SetWeight(1);
  EXPECT_EQ(network.flows().front()->weight, 1);
}

TEST_F(FlowQueueTest, StripingHoldsAlsoForAFlowThatComesLater) {
  sends.SetDealt(true);
  Open();
  EXPECT_TRUE(network.flows().front()->dealt);
  sends.SetDealt(false);
  EXPECT_FALSE(network.flows().front()->dealt);
}

}  // namespace
}  // namespace r2cc::collnet
