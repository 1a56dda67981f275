#include "health/view/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace r2cc::health {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class FleetTest : public testing::Test {
 protected:
  FleetTest() : view_("own") {}

  // A node with this many NICs, of which these are FAILED.
  void Add(const std::string& name, int nics, const std::vector<int>& failed, bool drill = false) {
    NodeState state;
    state.node = name;
    state.epoch = {1, ++epoch_};
    state.status = NodeStatus::kHealthy;
    for (int i = 0; i < nics; ++i) {
      NicStatus& nic = state.nics.emplace_back();
      nic.identity.name = absl::StrCat("rail", i);
      nic.state = std::find(failed.begin(), failed.end(), i) == failed.end() ? NicState::kHealthy : NicState::kFailed;
      nic.drill_failed = drill && nic.state == NicState::kFailed;
    }
    view_.Merge(state, 1);
  }
  std::vector<std::string> Lines() {
    std::vector<std::string> lines;
    for (const FleetFault& fault : FindFleetFaults(view_)) lines.push_back(FleetText(fault));
    return lines;
  }

  ClusterView view_;
  uint64_t epoch_ = 0;
};

TEST_F(FleetTest, ALeafSwitchIsNamedByItsRackAndRail) {
  for (int rack = 0; rack < 4; ++rack)
    for (int node = 0; node < 32; ++node)
      Add(absl::StrFormat("rack%d-%02d.example.com", rack, node), 8, rack == 3 && node >= 2 ? std::vector{1} : std::vector<int>{});
  EXPECT_THAT(Lines(), ElementsAre("rail1 is bad on 30 of 32 nodes of rack3: look at its leaf switch there"));
}

TEST_F(FleetTest, NodesWithoutARackInTheirNamesAreNamedFromTheFirstToTheLast) {
  for (int node = 0; node < 64; ++node)
    Add(absl::StrCat("n", node), 8, node >= 8 && node < 16 && node != 9 ? std::vector{5} : std::vector<int>{});
  EXPECT_THAT(Lines(), ElementsAre("rail5 is bad on 7 of 8 nodes of n8 to n15: look at its leaf switch there"));
}

TEST_F(FleetTest, ScatteredFaultsAreNone) {
  for (int node = 0; node < 64; ++node) Add(absl::StrCat("n", node), 8, node % 10 == 0 ? std::vector{5} : std::vector<int>{});
  EXPECT_THAT(Lines(), IsEmpty());
  for (int node = 0; node < 64; ++node)
    Add(absl::StrCat("r", node / 8, "-", node), 8, node % 10 == 0 ? std::vector{5} : std::vector<int>{});
  EXPECT_THAT(Lines(), IsEmpty());
}

TEST_F(FleetTest, ARailThatIsBadEverywhereIsOneLine) {
  for (int node = 0; node < 64; ++node) Add(absl::StrCat("r", node / 8, "-", node), 8, node != 3 ? std::vector{2} : std::vector<int>{});
  EXPECT_THAT(Lines(), ElementsAre("rail2 is bad on 63 of 64 nodes: look at the switches of this rail"));
}

TEST_F(FleetTest, NodesThatLostEachNicAreOneLineAndBlameNoRail) {
  for (int node = 0; node < 32; ++node) Add(absl::StrCat("r", node / 8, "-", node), 2, node < 8 ? std::vector{0, 1} : std::vector<int>{});
  EXPECT_THAT(Lines(),
              ElementsAre("each NIC is bad on 8 of 8 nodes of r0: look at what these nodes share: power, or the switches of all rails"));
}

TEST_F(FleetTest, DrillsAndFewNodesDoNotCount) {
  for (int node = 0; node < 16; ++node) Add(absl::StrCat("n", node), 4, {1}, /*drill=*/true);
  EXPECT_THAT(Lines(), IsEmpty());
  for (int node = 0; node < 2; ++node) Add(absl::StrCat("pair", node), 4, {1});
  EXPECT_THAT(Lines(), IsEmpty());
}

TEST_F(FleetTest, TheRackIsWhatNamesBeginWith) {
  EXPECT_EQ(RackOf("rack3-07"), "rack3");
  EXPECT_EQ(RackOf("dc1-rack3-07.example.com"), "dc1-rack3");
  EXPECT_EQ(RackOf("gpu_12"), "gpu");
  EXPECT_EQ(RackOf("n12"), "");
  EXPECT_EQ(RackOf("-7"), "");
  EXPECT_EQ(RackOf(""), "");
}

}  // namespace
}  // namespace r2cc::health
