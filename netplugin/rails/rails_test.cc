#include "netplugin/rails/rails.h"

#include <gtest/gtest.h>

#include <set>

#include "netplugin/rails/rail_cases.h"

namespace r2cc::net {
namespace {

using Ports = std::vector<verbs::PortFacts>;

TEST(IpAddress, ParsesAndClassifies) {
  EXPECT_EQ(ParseIpAddress("10.0.0.1")->text, "10.0.0.1");
  EXPECT_EQ(ParseIpAddress("FE80::0:1", 3)->text, "fe80::1");
  EXPECT_TRUE(ParseIpAddress("fe80::1")->IsLinkLocal());
  EXPECT_TRUE(ParseIpAddress("169.254.3.1")->IsLinkLocal());
  EXPECT_FALSE(ParseIpAddress("10.0.0.1")->IsLinkLocal());
  EXPECT_TRUE(ParseIpAddress("127.9.8.7")->IsLoopback());
  EXPECT_TRUE(ParseIpAddress("::1")->IsLoopback());
  EXPECT_FALSE(ParseIpAddress("2001:db8::1")->IsLoopback());
  for (const char* bad : {"", "eth0", "10.0.0", "10.0.0.256", "10.0.0.1/24", "1::2::3", "10.0.0.1 "})
    EXPECT_FALSE(ParseIpAddress(bad)) << bad;
  EXPECT_FALSE(FromSockaddr(nullptr));
  sockaddr unix_address{};
  unix_address.sa_family = AF_UNIX;
  EXPECT_FALSE(FromSockaddr(&unix_address));
}

TEST(ResolveRails, NamedInterfacesInTheirOrder) {
  FakeHostNetwork host = Server();
  const std::vector<Rail> rails = Resolved("eth1,eth0, eth3", host);
  ASSERT_EQ(Names(rails), "eth1,eth0,eth3");
  EXPECT_EQ(rails[1].index, 1);
  EXPECT_EQ(rails[1].interface, "eth0");
  EXPECT_EQ(rails[1].ifindex, 4);
  EXPECT_EQ(rails[1].address.text, "10.0.0.1");  // not the link-local one before it
  EXPECT_EQ(rails[1].pci, "0000:21:00.0");
  EXPECT_EQ(rails[1].pci_path, "/sys/devices/pci0000:00/0000:21:00.0");
  EXPECT_EQ(rails[1].guid, 0x020000000004u);
  EXPECT_EQ(rails[1].speed_mbps, 100'000);
  EXPECT_EQ(rails[1].netns_inode, host.netns_inode);
  EXPECT_FALSE(rails[1].fixed_address);
  EXPECT_TRUE(rails[1].present);
  EXPECT_TRUE(rails[1].up);
}

TEST(ResolveRails, AListMayStartWithTheRailsThatExist) {
  FakeHostNetwork host = Server();
  EXPECT_NE(Refused("eth0,eth1,eth7", host).find("eth7 does not exist on this node"), std::string::npos);
  std::vector<Rail> rails;
  std::string error;
  std::vector<std::string> warnings;
  ASSERT_TRUE(ResolveRails("~eth0,eth7,10.1.0.1,10.7.0.1,ib*", host, {}, &rails, &error, &warnings)) << error;
  EXPECT_EQ(Names(rails), "eth0,10.1.0.1");
  ASSERT_EQ(warnings.size(), 3u);
  EXPECT_EQ(warnings[0].rfind("R2CC: R2CC_RAILS: eth7 does not exist on this node; there are: ", 0), 0u) << warnings[0];
  EXPECT_NE(warnings[0].find("; the job starts without this rail"), std::string::npos);
  EXPECT_NE(Refused("~eth7,eth8", host).find("eth8 does not exist on this node"), std::string::npos) << "at least one has to be there";
  EXPECT_NE(Refused("eth0,~eth7", host).find("may only stand at the very beginning"), std::string::npos);
  EXPECT_NE(Refused("~eth0,eth0", host).find("twice"), std::string::npos);
}

TEST(ResolveRails, AddressesNameTheirInterface) {
  FakeHostNetwork host = Server();
  const std::vector<Rail> rails = Resolved("10.2.0.1,127.0.0.11,127.0.0.1,fe80::1", host);
  ASSERT_EQ(rails.size(), 4u);
  EXPECT_EQ(rails[0].interface, "eth2");
  EXPECT_EQ(rails[0].name, "10.2.0.1");
  EXPECT_TRUE(rails[0].fixed_address);
  EXPECT_EQ(rails[1].interface, "");
  EXPECT_EQ(rails[1].ifindex, 0);
  EXPECT_EQ(rails[1].address.text, "127.0.0.11");
  EXPECT_EQ(rails[1].pci_path, "");
  EXPECT_EQ(rails[1].speed_mbps, kUnknownSpeedMbps);
  EXPECT_TRUE(rails[1].up);
  EXPECT_EQ(rails[2].ifindex, 0);
  EXPECT_EQ(rails[3].interface, "eth0");
}

// `ip link property add dev eth1 altname enp65s0`.
TEST(ResolveRails, OtherNamesOfInterfaces) {
  FakeHostNetwork host = Server();
  host.interfaces[1].other_names = {"enp1s0"};
  host.interfaces[5].other_names = {"enp65s0", "rail0"};
  const std::vector<Rail> rails = Resolved("rail0,eth0", host);
  ASSERT_EQ(Names(rails), "rail0,eth0");
  EXPECT_EQ(rails[0].interface, "eth1");
  EXPECT_EQ(rails[0].address.text, "10.1.0.1");
  EXPECT_EQ(Names(Resolved("enp6*", host)), "eth1") << "a pattern that fits no interface by its name";
  EXPECT_EQ(Names(Resolved("e*", host)), "eno1,eth0,eth1,eth2,eth3");
  EXPECT_EQ(Names(Resolved("^rail0", host)), "eth0,eth2,eth3");
  host.interfaces[2].name = "enp193s0";
  EXPECT_EQ(Names(Resolved("enp*", host)), "enp193s0") << "eno1, which is known as enp1s0 too, is no rail unasked";
  EXPECT_EQ(Refused("eth1,enp65s0", host).find("R2CC_RAILS: enp65s0 is there twice (as eth1)"), 0u);
  host.interfaces[5].addresses.clear();
  EXPECT_EQ(Refused("eth1,enp65s0", host).find("R2CC_RAILS: enp65s0 is there twice (as eth1)"), 0u);
}

TEST(ResolveRails, DownWithoutCarrierOrAddressIsARailThatIsDown) {
  FakeHostNetwork host = Server();
  host.interfaces[2].admin_up = host.interfaces[2].carrier_up = false;
  host.interfaces[3].carrier_up = false;
  host.interfaces[4].addresses.clear();
  const std::vector<Rail> rails = Resolved("eth0,eth1,eth2,eth3", host);
  EXPECT_FALSE(rails[0].up);
  EXPECT_TRUE(rails[1].up);
  EXPECT_FALSE(rails[2].up);
  EXPECT_TRUE(rails[2].address.empty());
  EXPECT_FALSE(rails[3].up);
  EXPECT_EQ(rails[3].address.text, "10.3.0.1");
  for (const Rail& rail : rails) EXPECT_TRUE(rail.present);
}

TEST(ResolveRails, LoopbackRailIsDownWithTheLoopback) {
  FakeHostNetwork host;
  host.Add("lo").admin_up = false;
  EXPECT_FALSE(Resolved("127.0.0.2", host)[0].up);
}

TEST(ResolveRails, AMissingInterfaceIsNamedWithThoseThatExist) {
  FakeHostNetwork host = Server();
  host.interfaces[5].admin_up = false;
  EXPECT_EQ(Refused("eth0,eth9", host),
            "R2CC_RAILS: eth9 does not exist on this node; there are: lo (127.0.0.1), eno1 (192.168.0.5), eth3 (10.3.0.1), "
            "eth0 (10.0.0.1), eth2 (10.2.0.1), eth1 (10.1.0.1, down), docker0 (172.17.0.1), veth12ab (169.254.1.1); RDMA ports are "
            "rails where R2CC_TRANSPORT is verbs or auto; R2CC_RAILS=~eth0,eth9 starts with the rails that exist");
  EXPECT_EQ(Refused("eth9", host).find("R2CC_RAILS=~"), std::string::npos) << "of one rail none would be left";
  EXPECT_NE(Refused("10.9.9.9", host).find("10.9.9.9 is no address of this node"), std::string::npos);
  FakeHostNetwork nothing;
  EXPECT_NE(Refused("eth0", nothing).find("no interface at all"), std::string::npos);
}

TEST(ResolveRails, BadSyntaxIsRefused) {
  FakeHostNetwork host = Server();
  for (const char* spec : {",", "eth0,", ",eth0", "eth0,,eth1", "eth0,^eth1", "^", "^eth0,", "^^eth0", "^eth0,^eth1", " "})
    EXPECT_NE(Refused(spec, host).find("want"), std::string::npos) << spec;
}

TEST(ResolveRails, TheSameRailTwiceIsRefused) {
  FakeHostNetwork host = Server();
  EXPECT_NE(Refused("eth0,eth0", host).find("twice"), std::string::npos);
  EXPECT_NE(Refused("eth0,10.0.0.1", host).find("10.0.0.1 is there twice (as eth0)"), std::string::npos);
  EXPECT_NE(Refused("127.0.0.1,127.0.0.1", host).find("twice"), std::string::npos);
}

TEST(ResolveRails, TwoWithoutAddressAreTwoRails) {
  FakeHostNetwork host = Server();
  for (HostInterface& interface : host.interfaces) interface.addresses.clear();
  EXPECT_EQ(Resolved("eth0,eth1", host).size(), 2u);
}

TEST(ResolveRails, AtMostAsManyAsAnAttachRequestNames) {
  FakeHostNetwork host;
  std::string spec;
  for (size_t i = 1; i <= kRailsMax; ++i) spec += (i > 1 ? ",127.0.0." : "127.0.0.") + std::to_string(i);
  EXPECT_EQ(Resolved(spec, host).size(), kRailsMax);
  EXPECT_NE(Refused(spec + ",127.0.1.1", host).find("at most 32"), std::string::npos);
}

TEST(ResolveRails, UnsetMeansEveryNicInPciOrder) {
  FakeHostNetwork host = Server();
  EXPECT_EQ(Names(Resolved("", host)), "eth0,eth1,eth2,eth3");
}

TEST(ResolveRails, UnsetTakesRailsThatAreDown) {
  FakeHostNetwork host = Server();
  host.interfaces[3].admin_up = false;
  host.interfaces[3].speed_mbps = 0;
  const std::vector<Rail> rails = Resolved("", host);
  EXPECT_EQ(Names(rails), "eth0,eth1,eth2,eth3");
  EXPECT_FALSE(rails[0].up);
}

TEST(ResolveRails, UnsetFallsBackToVirtualInterfacesThenToHostedOnes) {
  FakeHostNetwork host;
  host.Add("lo", {"127.0.0.1"});
  host.Add("rail10", {"10.0.10.1"});
  host.Add("rail2", {"10.0.2.1"});
  host.Add("unconfigured", {"fe80::5"});
  host.Add("docker0", {"172.17.0.1"});
  EXPECT_EQ(Names(Resolved("", host)), "rail2,rail10");
  FakeHostNetwork only_docker;
  only_docker.Add("lo", {"127.0.0.1"});
  only_docker.Add("docker0", {"172.17.0.1"});
  EXPECT_EQ(Names(Resolved("", only_docker)), "docker0");
  FakeHostNetwork only_loopback;
  only_loopback.Add("lo", {"127.0.0.1"});
  EXPECT_EQ(Refused("", only_loopback),
            "R2CC_RAILS is not set and this node has no NIC with an IP address: name interfaces or addresses in R2CC_RAILS; there are: lo "
            "(127.0.0.1)");
}

TEST(ResolveRails, ExcludedOnesAreLeftOut) {
  FakeHostNetwork host = Server();
  EXPECT_EQ(Names(Resolved("^eth1,10.3.0.1", host)), "eth0,eth2");
  EXPECT_EQ(Names(Resolved("^eth?", host)), "eno1");
  EXPECT_NE(Refused("^eth0,eth1,eth2,eth3,eno1,docker0,veth12ab", host).find("has no NIC"), std::string::npos);
}

TEST(ResolveRails, ALineNamesAnExclusionThatExcludesNothing) {
  FakeHostNetwork host = Server();
  const struct {
    const char* spec;
    const char* warning;  // its begin; null: there is none
  } cases[] = {
      {"^eth1", nullptr},
      {"^eth1,eth9", "R2CC: R2CC_RAILS: ^eth9 does not exist on this node; there are: lo (127.0.0.1), eno1"},
      {"^eth1,mlx5_*", "R2CC: R2CC_RAILS: ^mlx5_* fits nothing on this node; there are: "},
      {"^eth1,10.9.9.9", "R2CC: R2CC_RAILS: ^10.9.9.9 is no address of this node; there are: "},
  };
  for (const auto& c : cases) {
    std::vector<Rail> rails;
    std::string error;
    std::vector<std::string> warnings;
    ASSERT_TRUE(ResolveRails(c.spec, host, {}, &rails, &error, &warnings)) << error;
    EXPECT_EQ(Names(rails), "eth0,eth2,eth3") << c.spec;
    ASSERT_EQ(warnings.size(), c.warning == nullptr ? 0u : 1u) << c.spec;
    for (const std::string& warning : warnings) EXPECT_EQ(warning.rfind(c.warning, 0), 0u) << warning;
  }
}

TEST(ResolveRails, PatternsStandForInterfacesByNameInTheirPlace) {
  FakeHostNetwork host = Server();
  host.AddNic("eth10", "0000:02:00.0", {"10.10.0.1"});
  const struct {
    const char* spec;
    const char* rails;
  } cases[] = {
      {"eth*", "eth0,eth1,eth2,eth3,eth10"},         {"eth?", "eth0,eth1,eth2,eth3"},
      {"eth2,e*", "eth2,eno1,eth0,eth1,eth3,eth10"}, {"eno1,eth1?,127.0.0.9", "eno1,eth10,127.0.0.9"},
      {"10.2.0.1,eth?", "10.2.0.1,eth0,eth1,eth3"},  {"*", "docker0,eno1,eth0,eth1,eth2,eth3,eth10,veth12ab"},
  };
  for (const auto& c : cases) EXPECT_EQ(Names(Resolved(c.spec, host)), c.rails) << c.spec;
  EXPECT_NE(Refused("eth*,eth0", host).find("eth0 is there twice (as eth0)"), std::string::npos);
  EXPECT_EQ(Refused("eth0,ib*", host).rfind("R2CC_RAILS: ib* fits nothing on this node; there are: lo (127.0.0.1), ", 0), 0u);
}

TEST(ResolveRails, GuidsAreDistinctAndStable) {
  FakeHostNetwork host = Server();
  for (HostInterface& interface : host.interfaces) interface.mac = {2, 2, 2, 2, 2, 2};
  const std::string spec = "eth0,eth1,eth2,127.0.0.1,127.0.0.2";
  std::set<uint64_t> guids;
  const std::vector<Rail> first = Resolved(spec, host);
  for (const Rail& rail : first) guids.insert(rail.guid);
  EXPECT_EQ(guids.size(), 5u);
  EXPECT_EQ(guids.count(0), 0u);
  const std::vector<Rail> second = Resolved(spec, host);
  for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].guid, second[i].guid);
}

TEST(ResolveRails, PciFunctionIsFoundAboveTheDevice) {
  FakeHostNetwork host;
  host.Add("eth0", {"10.0.0.1"}).device_path = "/sys/devices/pci0000:00/0000:00:03.0/virtio0";
  host.Add("eth1", {"10.0.0.2"}).device_path = "/sys/devices/platform/usb1/1-1";
  const std::vector<Rail> rails = Resolved("eth0,eth1", host);
  EXPECT_EQ(rails[0].pci_path, "/sys/devices/pci0000:00/0000:00:03.0");
  EXPECT_EQ(rails[0].pci, "0000:00:03.0");
  EXPECT_EQ(rails[1].pci_path, "");
}

std::string OobOf(const std::string& oob, const std::string& spec, FakeHostNetwork& host) {
  IpAddress address;
  std::string error;
  return ChooseOobAddress(oob, Resolved(spec, host), host, &address, &error) ? address.text : error;
}

TEST(Oob, AsConfigured) {
  FakeHostNetwork host = Server();
  EXPECT_EQ(OobOf("eth1", "", host), "10.1.0.1");
  EXPECT_EQ(OobOf("10.3.0.1", "", host), "10.3.0.1");
  EXPECT_EQ(OobOf("127.0.0.9", "", host), "127.0.0.9");
  EXPECT_EQ(OobOf("mgmt7", "", host).rfind("R2CC_OOB_IFNAME=mgmt7: this node does not have it; there are: lo", 0), 0u);
  EXPECT_EQ(OobOf("10.9.9.9", "", host).rfind("R2CC_OOB_IFNAME=10.9.9.9: this node does not have it", 0), 0u);
  host.Add("bare0");
  EXPECT_EQ(OobOf("bare0", "", host).rfind("R2CC_OOB_IFNAME=bare0: it has no IP address", 0), 0u);
}

TEST(Oob, FirstInterfaceThatIsNoRail) {
  FakeHostNetwork host = Server();
  EXPECT_EQ(OobOf("", "", host), "192.168.0.5");
  EXPECT_EQ(OobOf("", "eno1,eth0", host), "10.3.0.1");
  host.interfaces[1].admin_up = false;
  EXPECT_EQ(OobOf("", "", host), "10.0.0.1");  // docker and veths are nothing another node could reach
  host.interfaces[3].carrier_up = false;
  EXPECT_EQ(OobOf("", "", host), "10.1.0.1");
}

// The USB NIC of a BMC has the same address on every node: no peer can be reached there, and it often is the first one.
TEST(Oob, LinkLocalAddressesAreNotChosenUnasked) {
  FakeHostNetwork host;
  host.Add("lo", {"127.0.0.1"});
  host.Add("usb0", {"169.254.3.1"});
  host.Add("mgmt0", {"10.200.0.1"});
  host.Add("rail0", {"10.10.0.1"});
  host.AddNic("bmc_redfish0", "0000:00:14.0", {"169.254.3.1", "fe80::1"});
  EXPECT_EQ(OobOf("", "rail0", host), "10.200.0.1");
  EXPECT_EQ(OobOf("usb0", "rail0", host), "169.254.3.1");
  EXPECT_EQ(OobOf("169.254.3.1", "rail0", host), "169.254.3.1");
  EXPECT_EQ(Names(Resolved("", host)), "mgmt0,rail0");
  host.interfaces[2].addresses.clear();
  EXPECT_EQ(OobOf("", "rail0", host), "10.10.0.1");
  host.interfaces[2].other_names = {"enp3s0"};
  host.interfaces[2].addresses.push_back(*ParseIpAddress("10.200.0.1"));
  EXPECT_EQ(OobOf("enp3s0", "rail0", host), "10.200.0.1");
  EXPECT_EQ(OobOf("mgmt*", "rail0", host).rfind("R2CC_OOB_IFNAME=mgmt*: this node does not have it", 0), 0u);
}

TEST(Oob, VirtualInterfaceWhereThereIsNoNic) {
  FakeHostNetwork host;
  host.Add("lo", {"127.0.0.1"});
  host.Add("rail0", {"10.0.0.1"});
  host.Add("mgmt0", {"192.168.7.1"});
  EXPECT_EQ(OobOf("", "rail0", host), "192.168.7.1");
}

TEST(Oob, LoopbackRailsTalkOverLoopback) {
  FakeHostNetwork host = Server();
  EXPECT_EQ(OobOf("", "127.0.1.1,127.0.1.2", host), "127.0.0.1");
}

TEST(Oob, RailsThatAreAllThereIs) {
  FakeHostNetwork host;
  host.Add("rail0", {"10.0.0.1"}).admin_up = false;
  host.Add("rail1", {"10.0.1.1"}).admin_up = false;
  EXPECT_EQ(OobOf("", "rail0,rail1", host), "10.0.0.1");
  host.interfaces[0].addresses.clear();
  host.interfaces[1].addresses.clear();
  EXPECT_EQ(OobOf("", "rail0,rail1", host).rfind("no interface for out-of-band connections: set R2CC_OOB_IFNAME", 0), 0u);
}

}  // namespace
}  // namespace r2cc::net
