#include "netplugin/link/control_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace r2cc::net {
namespace {

constexpr LinkId kHome = 1;

struct ControlQueueTest : testing::Test {
  ControlQueueTest() { control_queue.set_links(3); }

  std::vector<ChannelId> Taken() {
    std::vector<ChannelId> channels;
    for (const SessionAction& action : actions) channels.push_back(action.channel);
    actions.clear();
    return channels;
  }
  std::vector<ChannelId> Best() {
    EXPECT_EQ(control_queue.SendBest({}, kHome), control_queue.any_open());
    return Taken();
  }
  using Channels = std::vector<ChannelId>;

  std::vector<SessionAction> actions;
  ControlQueue control_queue{&actions};
};

TEST_F(ControlQueueTest, TheHomeChannelIsBestThenTheNextThenTheOneOutOfBand) {
  EXPECT_EQ(Best(), Channels{});
  control_queue.Up(kOobChannel);
  EXPECT_EQ(Best(), Channels{kOobChannel});
  control_queue.Up(0);
  EXPECT_EQ(Best(), Channels{0});
  control_queue.Up(2);
  EXPECT_EQ(Best(), Channels{2});
  control_queue.Up(kHome);
  EXPECT_EQ(Best(), Channels{kHome});
  control_queue.Down(kHome);
  EXPECT_EQ(Best(), Channels{2});
}

TEST_F(ControlQueueTest, AChannelThatIsMerelyOpenIsTheLastResort) {
  control_queue.Open(kHome);
  EXPECT_EQ(Best(), Channels{kHome});
  control_queue.Up(kOobChannel);
  EXPECT_EQ(Best(), Channels{kOobChannel});
  control_queue.Up(0);
  EXPECT_EQ(Best(), Channels{0});
  control_queue.SendAll({});
  EXPECT_EQ(Taken(), (Channels{kOobChannel, 0, kHome}));
  control_queue.Up(kHome);
  EXPECT_EQ(Best(), Channels{kHome});
}

TEST_F(ControlQueueTest, AnUnansweredFrameIsRepeatedOnAllChannels) {
  control_queue.Up(kOobChannel);
  control_queue.Up(0);
  control_queue.Open(2);
  const ControlQueue::Key key{FrameType::kBye, 7, 0};
  control_queue.SendUntilAnswered(key, frames::Bye{.flow = 7}, kHome, false, 1);
  EXPECT_EQ(Taken(), Channels{0});
  control_queue.Tick(kNanosPerMs);
  EXPECT_EQ(Taken(), Channels{});
  control_queue.Tick(kNanosPerSecond);
  EXPECT_EQ(Taken(), (Channels{kOobChannel, 0, 2}));
  control_queue.Answered(key);
  EXPECT_TRUE(control_queue.idle());
  control_queue.Tick(2 * kNanosPerSecond);
  EXPECT_EQ(Taken(), Channels{});
}

}  // namespace
}  // namespace r2cc::net
