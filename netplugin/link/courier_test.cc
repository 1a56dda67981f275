#include "netplugin/link/courier.h"

#include <gtest/gtest.h>

#include <vector>

namespace r2cc::net {
namespace {

constexpr LinkId kHome = 1;

struct CourierTest : testing::Test {
  CourierTest() { courier.set_links(3); }

  std::vector<Lane> Taken() {
    std::vector<Lane> lanes;
    for (const Action& action : actions) lanes.push_back(action.lane);
    actions.clear();
    return lanes;
  }
  std::vector<Lane> Best() {
    EXPECT_EQ(courier.SendBest({}, kHome), courier.any_open());
    return Taken();
  }
  using Lanes = std::vector<Lane>;

  std::vector<Action> actions;
  Courier courier{&actions};
};

TEST_F(CourierTest, TheHomeLaneIsBestThenTheNextThenTheOneOutOfBand) {
  EXPECT_EQ(Best(), Lanes{});
  courier.Up(kOobLane);
  EXPECT_EQ(Best(), Lanes{kOobLane});
  courier.Up(0);
  EXPECT_EQ(Best(), Lanes{0});
  courier.Up(2);
  EXPECT_EQ(Best(), Lanes{2});
  courier.Up(kHome);
  EXPECT_EQ(Best(), Lanes{kHome});
  courier.Down(kHome);
  EXPECT_EQ(Best(), Lanes{2});
}

TEST_F(CourierTest, ALaneThatIsMerelyOpenIsTheLastResort) {
  courier.Open(kHome);
  EXPECT_EQ(Best(), Lanes{kHome});
  courier.Up(kOobLane);
  EXPECT_EQ(Best(), Lanes{kOobLane});
  courier.Up(0);
  EXPECT_EQ(Best(), Lanes{0});
  courier.SendAll({});
  EXPECT_EQ(Taken(), (Lanes{kOobLane, 0, kHome}));
  courier.Up(kHome);
  EXPECT_EQ(Best(), Lanes{kHome});
}

TEST_F(CourierTest, WhatIsKeptGoesOnAllLanesTheSecondTime) {
  courier.Up(kOobLane);
  courier.Up(0);
  courier.Open(2);
  const Courier::Key key{FrameType::kBye, 7, 0};
  courier.Keep(key, Frame{.type = FrameType::kBye, .flow = 7}, kHome, false, 1);
  EXPECT_EQ(Taken(), Lanes{0});
  courier.Tick(kNanosPerMs);
  EXPECT_EQ(Taken(), Lanes{});
  courier.Tick(kNanosPerSecond);
  EXPECT_EQ(Taken(), (Lanes{kOobLane, 0, 2}));
  courier.Answered(key);
  EXPECT_TRUE(courier.idle());
  courier.Tick(2 * kNanosPerSecond);
  EXPECT_EQ(Taken(), Lanes{});
}

}  // namespace
}  // namespace r2cc::net
