#include "netplugin/collnet/member_states.h"

#include <gtest/gtest.h>

namespace r2cc::collnet {
namespace {

TEST(MemberStatesTest, AnOlderStateChangesNothing) {
  MemberStates states(3);
  EXPECT_FALSE(states.Knows(1));
  EXPECT_TRUE(states.Learn({1, 2, 50, {2}}));
  EXPECT_TRUE(states.Knows(1));
  EXPECT_FALSE(states.Learn({1, 2, 60, {}}));
  EXPECT_FALSE(states.Learn({1, 1, 70, {}}));
  EXPECT_EQ(states.BytesPerSecond(), (std::vector<uint64_t>{50, 50, 50}));
  EXPECT_FALSE(states.HavePath(1, 2));
  EXPECT_TRUE(states.Learn({1, 3, 60, {}}));
  EXPECT_TRUE(states.HavePath(1, 2));
}

TEST(MemberStatesTest, AMemberWithoutACapacityCountsAsTheFastest) {
  MemberStates states(3);
  states.Learn({0, 1, 3, {}});
  states.Learn({2, 1, 4, {}});
  EXPECT_EQ(states.BytesPerSecond(), (std::vector<uint64_t>{3, 4, 4}));
}

// The word of one of them is enough.
TEST(MemberStatesTest, APairHasNoPathWhileOneOfThemReportsNone) {
  MemberStates states(4);
  EXPECT_FALSE(states.any_was_unreachable());
  states.Learn({3, 1, 4, {1}});
  EXPECT_FALSE(states.HavePath(1, 3));
  EXPECT_FALSE(states.HavePath(3, 1));
  EXPECT_TRUE(states.HavePath(0, 3));
  EXPECT_EQ(states.ReachAll(), (std::vector<bool>{true, false, true, false}));
  states.Learn({1, 1, 4, {3}});
  states.Learn({3, 2, 4, {}});
  EXPECT_FALSE(states.HavePath(1, 3));
  states.Learn({1, 2, 4, {}});
  EXPECT_TRUE(states.HavePath(1, 3));
  EXPECT_EQ(states.ReachAll(), (std::vector<bool>(4, true)));
  EXPECT_TRUE(states.any_was_unreachable());
}

}  // namespace
}  // namespace r2cc::collnet
