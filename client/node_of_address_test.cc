#include "client/node_of_address.h"

#include <gtest/gtest.h>

namespace r2cc::client {
namespace {

v1::StatusReply TwoNodes() {
  v1::StatusReply status;
  status.set_node("n0");
  for (int i = 0; i < 2; ++i) {
    v1::NodeView* const node = status.add_nodes();
    node->set_node("n" + std::to_string(i));
    node->set_peer_address(i == 0 ? "10.200.0.1:7460" : "[fd00::2]:7460");
    node->add_nics()->set_address("10.10.0." + std::to_string(i + 1));
    node->add_nics()->set_address("");
  }
  v1::PeerStatus* const peer = status.add_peers();
  peer->set_node("n2");
  peer->set_address("10.200.0.3:7460");
  return status;
}

TEST(NodeOfAddress, ByTheDaemonsAddressAndByThoseOfNics) {
  EXPECT_EQ(*NodeOfAddress(TwoNodes(), "10.200.0.1"), "n0");
  EXPECT_EQ(*NodeOfAddress(TwoNodes(), "10.10.0.2"), "n1");
  EXPECT_EQ(*NodeOfAddress(TwoNodes(), "fd00:0::2"), "n1");
  EXPECT_EQ(*NodeOfAddress(TwoNodes(), "10.200.0.3"), "n2") << "a peer that never was connected";
}

TEST(NodeOfAddress, NobodyHasIt) {
  EXPECT_EQ(NodeOfAddress(TwoNodes(), "10.9.9.9").status().message(),
            "r2ccd knows no node with the address 10.9.9.9: name the node itself, one of n0, n1, n2; `r2ccctl status` shows them");
}

TEST(NodeOfAddress, ATextThatIsNoAddressIsAName) {
  for (const char* name : {"n0", "node-10", "10.0.0", "", "10.200.0.1:7460"}) EXPECT_FALSE(IsAddress(name)) << name;
  for (const char* address : {"10.200.0.1", "fd00::2"}) EXPECT_TRUE(IsAddress(address)) << address;
}

}  // namespace
}  // namespace r2cc::client
