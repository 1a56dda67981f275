#include "netplugin/flow/flow_map.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace r2cc::net {
namespace {

struct FlowMapTest : testing::Test {
  FlowMapTest() {
    map.Add(7, "seven");
    map.Add(3, "three");
  }
  FlowMap<std::string> map;
};

TEST_F(FlowMapTest, FindsTheSameOneAgainAndAnother) {
  ASSERT_NE(map.Find(7), nullptr);
  EXPECT_EQ(*map.Find(7), "seven");
  EXPECT_EQ(*map.Find(7), "seven");
  EXPECT_EQ(*map.Find(3), "three");
  EXPECT_EQ(map.at(7), "seven");
  EXPECT_EQ(map.Find(5), nullptr);
  EXPECT_TRUE(map.contains(3));
  EXPECT_FALSE(map.contains(5));
}

TEST_F(FlowMapTest, AnErasedFlowIsNotFoundAlthoughItWasFoundLast) {
  ASSERT_NE(map.Find(7), nullptr);
  map.Erase(7);
  EXPECT_EQ(map.Find(7), nullptr);
  EXPECT_EQ(*map.Find(3), "three");
  EXPECT_EQ(map.size(), 1u);
  map.Erase(7);
  map.Erase(3);
  EXPECT_TRUE(map.empty());
}

TEST_F(FlowMapTest, AFlowThatIsAddedAgainIsNew) {
  std::string* const seven = map.Find(7);
  EXPECT_EQ(map.Add(7, "another"), seven);
  EXPECT_EQ(*seven, "seven");
  map.Erase(7);
  map.Add(7, "another");
  EXPECT_EQ(*map.Find(7), "another");
}

TEST_F(FlowMapTest, GoesThroughThemByNumberAndLeavesThemWhereTheyAre) {
  const std::string* const seven = map.Find(7);
  for (FlowId flow = 10; flow < 100; ++flow) map.Add(flow, "more");
  EXPECT_EQ(map.Find(7), seven);
  std::vector<FlowId> flows;
  for (const auto& [flow, value] : map) flows.push_back(flow);
  ASSERT_EQ(flows.size(), 92u);
  EXPECT_EQ(flows.front(), 3u);
  EXPECT_EQ(flows.back(), 99u);
}

}  // namespace
}  // namespace r2cc::net
