#include "netplugin/rails/arp_flux.h"

#include <gtest/gtest.h>

#include "netplugin/rails/fake_host_network.h"

namespace r2cc::net {
namespace {

using Strings = std::vector<std::string>;

class ArpFluxTest : public testing::Test {
 protected:
  // Three rails, the first of which main routes name, in one network of 10.10.0.0/16 unless said otherwise.
  ArpFluxTest() {
    for (int i = 0; i < 3; ++i) {
      HostInterface& nic =
          host_.AddNic("rail" + std::to_string(i), "0000:2" + std::to_string(i) + ":00.0", {"10.10." + std::to_string(i) + ".1"});
      nic.addresses[0].prefix_bits = 16;
    }
    host_.answers_for_others = true;
    host_.leaves_by = [](const std::string&) { return 1; };
  }
  // Each rail as "-": not used, "any": by any route, "own": tied to its interface.
  Strings Settled() {
    std::vector<Rail> rails;
    std::string error;
    EXPECT_TRUE(ResolveRails("rail0,rail1,rail2", host_, {}, &rails, &error, &warnings_)) << error;
    Strings how;
    for (const Rail& rail : rails) {
      EXPECT_EQ(rail.up, !rail.unused);
      how.push_back(rail.unused ? "-" : rail.any_route ? "any" : "own");
    }
    return how;
  }

  FakeHostNetwork host_;
  Strings warnings_;
};

TEST_F(ArpFluxTest, OnlyTheOneByWhichAllLeaves) {
  EXPECT_EQ(Settled(), (Strings{"any", "-", "-"}));
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_EQ(
      warnings_[0],
      "R2CC: not used: rail1, rail2, in one network (10.10.0.0/16) with rail0, while each interface answers ARP for the others' addresses "
      "and their packets leave by another: set net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2 (and rp_filter=2 where it "
      "is 1) and a routing table for each, as \"ip rule add from 10.10.2.1 table N; ip route add 10.10.0.0/16 dev rail2 table N\"");
  host_.leaves_by = [](const std::string&) { return 3; };
  EXPECT_EQ(Settled(), (Strings{"-", "-", "any"}));
  host_.leaves_by = [](const std::string&) { return 9; };
  EXPECT_EQ(Settled(), (Strings{"any", "-", "-"})) << "one is left";
}

TEST_F(ArpFluxTest, WithRulesAllAreUsedWhereverPacketsComeIn) {
  host_.leaves_by = [](const std::string& from) { return from == "10.10.0.1" ? 1 : from == "10.10.1.1" ? 2 : 3; };
  EXPECT_EQ(Settled(), (Strings{"any", "any", "any"}));
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(ArpFluxTest, AnAddressThatOnlyItsInterfaceAnswersIsTiedToIt) {
  host_.answers_for_others = false;
  EXPECT_EQ(Settled(), (Strings{"own", "own", "own"}));
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(ArpFluxTest, NetworksOfTheirOwn) {
  for (HostInterface& nic : host_.interfaces) nic.addresses[0].prefix_bits = 24;
  EXPECT_EQ(Settled(), (Strings{"own", "own", "own"}));
  for (HostInterface& nic : host_.interfaces) nic.addresses[0].prefix_bits = 0;
  EXPECT_EQ(Settled(), (Strings{"own", "own", "own"})) << "not known";
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(ArpFluxTest, TwoAddressesOfOneInterfaceAreNoMatter) {
  host_.interfaces[0].addresses.push_back(*ParseIpAddress("10.10.0.9"));
  host_.interfaces[0].addresses[1].prefix_bits = 16;
  std::vector<Rail> rails;
  std::string error;
  ASSERT_TRUE(ResolveRails("10.10.0.1,10.10.0.9", host_, {}, &rails, &error, &warnings_)) << error;
  EXPECT_TRUE(!rails[0].any_route && !rails[1].any_route && rails[0].up && rails[1].up);
  EXPECT_TRUE(warnings_.empty());
}

}  // namespace
}  // namespace r2cc::net
