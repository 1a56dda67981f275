#include "client/ready.h"

#include <gtest/gtest.h>

#include <sstream>
#include <vector>

#include "absl/status/status.h"

namespace r2cc::client {
namespace {

v1::NodeView Node(const std::vector<v1::NicState>& states) {
  v1::NodeView node;
  node.set_node("n0");
  for (const v1::NicState state : states) {
    v1::NicView* const nic = node.add_nics();
    nic->set_name("rail" + std::to_string(node.nics_size() - 1));
    nic->set_state(state);
    nic->set_operator_weight_permille(1000);
  }
  return node;
}

TEST(Ready, ARailCountsIfItMayCarryTraffic) {
  const v1::NodeView node = Node({v1::HEALTHY, v1::DEGRADED, v1::SUSPECT, v1::FAILED, v1::PROVING, v1::DRAINED, v1::UNCABLED});
  EXPECT_EQ(JudgeReady(node, 3).exit_code(), 0u);
  EXPECT_EQ(JudgeReady(node, 4).exit_code(), 2u) << "the one that proves itself may be usable soon";
  const v1::ReadyReport report = JudgeReady(node, 5);
  EXPECT_EQ(report.exit_code(), 1u);
  EXPECT_EQ(report.rails_usable(), 3u);
  EXPECT_EQ(report.rails(), 7u);
}

TEST(Ready, OneDeadRailOfFourIsReady) {
  v1::NodeView node = Node({v1::HEALTHY, v1::FAILED, v1::HEALTHY, v1::HEALTHY});
  node.mutable_nics(1)->set_reason("link down");
  EXPECT_EQ(JudgeReady(node, 1).text(), "ready: n0 has 3 of 4 rails (rail1 FAILED: link down)");
  EXPECT_EQ(JudgeReady(node, 4).text(), "not ready: n0 has 3 of 4 rails, needs 4 (rail1 FAILED: link down)");
  node.mutable_nics(0)->set_operator_weight_permille(0);
  EXPECT_EQ(JudgeReady(node, 3).exit_code(), 1u) << "a weight of 0 carries nothing";
}

TEST(Ready, NoDaemonIsOneLineAndCodeTwo) {
  std::ostringstream out;
  EXPECT_EQ(client::Run(ReadyCommand{.socket_path = "/nowhere/r2ccd.sock"}, out), 2);
  EXPECT_EQ(out.str().find("cannot tell: r2ccd is not running: there is no /nowhere/r2ccd.sock"), 0u) << out.str();
  EXPECT_EQ(out.str().find('\n'), out.str().size() - 1) << "one line";
}

}  // namespace
}  // namespace r2cc::client
