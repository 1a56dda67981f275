#include "health/view/peer_evidence.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace r2cc::health {
namespace {

NodeState Peer(const std::vector<std::pair<std::string, NicState>>& nics) {
  NodeState state;
  state.node = "n1";
  for (const auto& [name, nic_state] : nics) {
    NicStatus nic;
    nic.identity.name = name;
    nic.state = nic_state;
    nic.reason = "link down";
    state.nics.push_back(nic);
  }
  return state;
}

std::string TextOf(const std::vector<Evidence>& all) {
  std::string words;
  for (const Evidence& evidence : all) words += evidence.subject.ToString() + " " + EvidenceKindName(evidence.kind) + "; ";
  return words;
}

TEST(PeerEvidence, NicsThatFailOrComeBack) {
  const NodeState good = Peer({{"r0", NicState::kHealthy}, {"r1", NicState::kHealthy}});
  const NodeState bad = Peer({{"r0", NicState::kFailed}, {"r1", NicState::kHealthy}});
  const NodeState proving = Peer({{"r0", NicState::kProving}, {"r1", NicState::kDrained}});
  const NodeState fewer = Peer({{"r1", NicState::kHealthy}});
  EXPECT_EQ(TextOf(PeerEvidence(nullptr, good, 1)), "");
  EXPECT_EQ(TextOf(PeerEvidence(nullptr, bad, 1)), "n1/r0 peer-nic-failed; ");
  EXPECT_EQ(TextOf(PeerEvidence(&good, bad, 1)), "n1/r0 peer-nic-failed; ");
  EXPECT_EQ(TextOf(PeerEvidence(&bad, bad, 1)), "");
  EXPECT_EQ(TextOf(PeerEvidence(&bad, proving, 1)), "n1/r0 peer-nic-back; ");
  EXPECT_EQ(TextOf(PeerEvidence(&bad, fewer, 1)), "n1/r0 peer-nic-back; ");
}

}  // namespace
}  // namespace r2cc::health
