#include "health/view/node_state.h"

#include <gtest/gtest.h>

namespace r2cc::health {
namespace {

NodeState TwoNics() {
  NodeState state;
  state.node = "n0";
  for (const char* const name : {"r0", "r1"}) {
    NicStatus nic;
    nic.identity.name = name;
    nic.link_up = true;
    state.nics.push_back(nic);
  }
  return state;
}

TEST(NodeState, TakesWhatItsRailProbesAdd) {
  RailReport report;
  report.probe_nonce = 7;
  report.nics["r1"] = {7460, true};
  report.nics["elsewhere"] = {1, true};
  report.pairs = {{"r1", {"n1", "r1"}, true}};
  const NodeState state = WithRails(TwoNics(), report);
  EXPECT_EQ(state.probe_nonce, 7u);
  EXPECT_EQ(state.pairs, report.pairs);
  ASSERT_EQ(state.nics.size(), 2u);
  EXPECT_EQ(state.nics[0], TwoNics().nics[0]);
  EXPECT_EQ(state.nics[1].probe_port, 7460);
  EXPECT_TRUE(state.nics[1].port_dead);
  // Nothing of an earlier report stays.
  EXPECT_EQ(WithRails(state, RailReport()), TwoNics());
}

TEST(NodeState, ProbeResultsAreNoOtherPlanButABrokenPathIs) {
  const NodeState plain = TwoNics();
  NodeState other = plain;
  other.pairs = {{"r0", {"n1", "r0"}, true}};
  EXPECT_TRUE(plain.PlansAs(other));
  EXPECT_TRUE(plain.ProbedAs(other));
  other.pairs = {{"r0", {"n1", "r0"}, true, true}};
  EXPECT_FALSE(plain.PlansAs(other));
  other = plain;
  other.nics[0].probe_port = 1;
  EXPECT_FALSE(plain.ProbedAs(other));
}

}  // namespace
}  // namespace r2cc::health
