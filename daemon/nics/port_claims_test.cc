#include "daemon/nics/port_claims.h"

#include <gtest/gtest.h>

namespace r2cc::daemon {
namespace {

TEST(PortClaimsTest, TheOwnPortIsTheOwnAndOneThatTwoClaimIsNobodys) {
  health::ClusterView view("n5");
  uint64_t counter = 0;
  const auto add = [&](const std::string& node, const std::string& nic, uint64_t guid) {
    health::NodeState state;
    state.node = node;
    state.epoch = {1, ++counter};
    state.nics.push_back({.identity = {.name = nic, .port_guid = guid}});
    if (node == "n5")
      view.SetOwn(state, 1);
    else
      view.Merge(state, 1);
  };
  add("n5", "rail0", 0x50);
  add("n3", "stolen", 0x50);
  add("n4", "rail0", 0x40);
  EXPECT_EQ(NicOfPort(view, "n5", 0x50), (health::NicKey{"n5", "rail0"}));
  EXPECT_EQ(NicOfPort(view, "n5", 0x40), (health::NicKey{"n4", "rail0"}));
  add("n3", "stolen", 0x40);
  EXPECT_EQ(NicOfPort(view, "n5", 0x40), std::nullopt);
  EXPECT_EQ(NicOfPort(view, "n5", 0x60), std::nullopt);
}

}  // namespace
}  // namespace r2cc::daemon
