#include "daemon/http/map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace r2cc::daemon {
namespace {

using testing::ElementsAre;

v1::ListNicsReply OneNic(const std::function<void(v1::NicView*)>& change) {
  v1::ListNicsReply nics;
  v1::NodeView* const node = nics.add_nodes();
  node->set_node("n1");
  node->set_word(v1::NODE_DEGRADED);
  v1::NicView* const nic = node->add_nics();
  nic->set_name("rail0");
  nic->set_state(v1::HEALTHY);
  nic->set_operator_weight_permille(1000);
  nic->set_share_permille(900);
  change(nic);
  return nics;
}

TEST(MapTest, ANicWithWhichAllIsWellIsAName) {
  v1::StatusReply asked;
  asked.set_node("n7");
  asked.set_release("0.3.0");
  const v1::ClusterMap map = MapOf(OneNic([](v1::NicView*) {}), asked);
  EXPECT_EQ(map.node(), "n7");
  EXPECT_EQ(map.release(), "0.3.0");
  ASSERT_EQ(map.nodes_size(), 1);
  EXPECT_EQ(map.nodes(0).node(), "n1");
  EXPECT_EQ(map.nodes(0).word(), v1::NODE_DEGRADED);
  EXPECT_THAT(map.nodes(0).healthy(), ElementsAre("rail0"));
  EXPECT_EQ(map.nodes(0).nics_size(), 0);
}

TEST(MapTest, AnythingElseIsShownWithItsReason) {
  const std::vector<std::function<void(v1::NicView*)>> changes = {
      [](v1::NicView* nic) { nic->set_state(v1::FAILED); }, [](v1::NicView* nic) { nic->set_operator_weight_permille(500); },
      [](v1::NicView* nic) { nic->set_drained(true); },     [](v1::NicView* nic) { nic->set_drill_failed(true); },
      [](v1::NicView* nic) { nic->set_drill_ends_ns(5); },  [](v1::NicView* nic) { nic->add_drained_jobs("train"); },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    const v1::ListNicsReply nics = OneNic([&](v1::NicView* nic) {
      nic->set_reason("why");
      nic->set_since_ns(3);
      changes[i](nic);
    });
    const v1::ClusterMap map = MapOf(nics, {});
    EXPECT_EQ(map.nodes(0).healthy_size(), 0) << i;
    ASSERT_EQ(map.nodes(0).nics_size(), 1) << i;
    const v1::MapNic& shown = map.nodes(0).nics(0);
    const v1::NicView& nic = nics.nodes(0).nics(0);
    EXPECT_EQ(shown.name(), "rail0");
    EXPECT_EQ(shown.state(), nic.state());
    EXPECT_EQ(shown.reason(), "why");
    EXPECT_EQ(shown.since_ns(), 3);
    EXPECT_EQ(shown.operator_weight_permille(), nic.operator_weight_permille());
    EXPECT_EQ(shown.share_permille(), 900u);
    EXPECT_EQ(shown.drained(), nic.drained());
    EXPECT_EQ(shown.drill_failed(), nic.drill_failed());
    EXPECT_EQ(shown.drill_ends_ns(), nic.drill_ends_ns());
    EXPECT_EQ(shown.drained_jobs_size(), nic.drained_jobs_size());
  }
}

}  // namespace
}  // namespace r2cc::daemon
