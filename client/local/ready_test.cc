#include "client/local/ready.h"

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

TEST(Ready, TheProblemDetectorReadsTheCauseFirst) {
  v1::NodeView node = Node({v1::HEALTHY, v1::FAILED, v1::HEALTHY, v1::UNCABLED, v1::DRAINED});
  node.mutable_nics(1)->set_reason("link down");
  v1::ReadyReport report = JudgeReady(node, kEachRail);
  EXPECT_EQ(report.exit_code(), 1u);
  EXPECT_EQ(NpdLine(report), "rail1 FAILED: link down; 2 of 5 rails usable");
  node.mutable_nics(1)->set_drill_failed(true);
  report = JudgeReady(node, kEachRail);
  EXPECT_EQ(report.exit_code(), 0u) << "a drill, a drain and a port without a cable are no faults";
  EXPECT_EQ(NpdLine(report), "2 of 5 rails usable");
  EXPECT_EQ(JudgeReady(Node({v1::HEALTHY, v1::PROVING}), kEachRail).exit_code(), 2u);
}

TEST(Ready, TheProblemDetectorGetsEightyBytesAndWholeLetters) {
  for (size_t length = 40; length < 140; ++length) {
    v1::NodeView node = Node({v1::FAILED});
    node.mutable_nics(0)->set_reason(std::string(length, 'x') + "\u00e4\u20ac\u00e4\u20ac\u00e4");
    const std::string line = NpdLine(JudgeReady(node, kEachRail));
    EXPECT_LE(line.size(), kNpdBytesMax);
    EXPECT_EQ(line.find("rail0 FAILED: xxx"), 0u);
    const size_t end = line.ends_with("...") ? line.size() - 3 : line.size();
    // Each first byte has its letter's others behind it.
    for (size_t i = 0; i < end;) {
      const auto first = static_cast<unsigned char>(line[i]);
      const size_t bytes = first < 0x80 ? 1 : first < 0xe0 ? 2 : 3;
      ASSERT_LE(i + bytes, end) << line;
      ASSERT_NE(first & 0xc0, 0x80) << line;
      i += bytes;
    }
  }
  EXPECT_LE(NpdLine(JudgeReady(absl::UnavailableError(std::string(200, 'y')), kEachRail)).size(), kNpdBytesMax);
}

TEST(Ready, NoDaemonIsOneLineAndCodeTwo) {
  std::ostringstream out;
  EXPECT_EQ(client::Run(ReadyCommand{.socket_path = "/nowhere/r2ccd.sock"}, out), 2);
  EXPECT_EQ(out.str().find("cannot tell: r2ccd is not running: there is no /nowhere/r2ccd.sock"), 0u) << out.str();
  EXPECT_EQ(out.str().find('\n'), out.str().size() - 1) << "one line";
}

}  // namespace
}  // namespace r2cc::client
