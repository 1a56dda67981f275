#include "netplugin/link/control_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace r2cc::net {
namespace {

constexpr LinkId kHome = 1;

struct ControlQueueTest : testing::Test {
  ControlQueueTest() { control_queue.set_links(3); }

  std::vector<Lane> Taken() {
    std::vector<Lane> lanes;
    for (const Action& action : actions) lanes.push_back(action.lane);
    actions.clear();
    return lanes;
  }
  std::vector<Lane> Best() {
    EXPECT_EQ(control_queue.SendBest({}, kHome), control_queue.any_open());
    return Taken();
  }
  using Lanes = std::vector<Lane>;

  std::vector<Action> actions;
  ControlQueue control_queue{&actions};
};

TEST_F(ControlQueueTest, TheHomeLaneIsBestThenTheNextThenTheOneOutOfBand) {
  EXPECT_EQ(Best(), Lanes{});
  control_queue.Up(kOobLane);
  EXPECT_EQ(Best(), Lanes{kOobLane});
  control_queue.Up(0);
  EXPECT_EQ(Best(), Lanes{0});
  control_queue.Up(2);
  EXPECT_EQ(Best(), Lanes{2});
  control_queue.Up(kHome);
  EXPECT_EQ(Best(), Lanes{kHome});
  control_queue.Down(kHome);
  EXPECT_EQ(Best(), Lanes{2});
}

TEST_F(ControlQueueTest, ALaneThatIsMerelyOpenIsTheLastResort) {
  control_queue.Open(kHome);
  EXPECT_EQ(Best(), Lanes{kHome});
  control_queue.Up(kOobLane);
  EXPECT_EQ(Best(), Lanes{kOobLane});
  control_queue.Up(0);
  EXPECT_EQ(Best(), Lanes{0});
  control_queue.SendAll({});
  EXPECT_EQ(Taken(), (Lanes{kOobLane, 0, kHome}));
  control_queue.Up(kHome);
  EXPECT_EQ(Best(), Lanes{kHome});
}

TEST_F(ControlQueueTest, WhatIsKeptGoesOnAllLanesTheSecondTime) {
  control_queue.Up(kOobLane);
  control_queue.Up(0);
  control_queue.Open(2);
  const ControlQueue::Key key{FrameType::kBye, 7, 0};
  control_queue.SendUntilAnswered(key, Frame{.type = FrameType::kBye, .flow = 7}, kHome, false, 1);
  EXPECT_EQ(Taken(), Lanes{0});
  control_queue.Tick(kNanosPerMs);
  EXPECT_EQ(Taken(), Lanes{});
  control_queue.Tick(kNanosPerSecond);
  EXPECT_EQ(Taken(), (Lanes{kOobLane, 0, 2}));
  control_queue.Answered(key);
  EXPECT_TRUE(control_queue.idle());
  control_queue.Tick(2 * kNanosPerSecond);
  EXPECT_EQ(Taken(), Lanes{});
}

}  // namespace
}  // namespace r2cc::net
