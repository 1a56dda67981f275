// Which of an interface's addresses a rail has.
#include <gtest/gtest.h>

#include "netplugin/rails/rail_cases.h"

namespace r2cc::net {
namespace {

// The node routes to itself (BGP to the host): its address lies on lo, and any NIC leads there.
TEST(ResolveRails, AnAddressOfTheLoopbackDeviceIsReachedByAnyRoute) {
  FakeHostNetwork host = Server();
  host.interfaces[0].addresses.push_back(*ParseIpAddress("10.99.0.1"));
  host.Add("dummy0", {"10.99.0.2"}).dummy = true;
  host.AddNic("eth9", "0000:e1:00.1", {"10.99.0.9"}).speed_mbps = 100'000;
  const std::vector<Rail> rails = Resolved("10.99.0.1,10.99.0.2,10.99.0.9,127.0.0.1", host);
  ASSERT_EQ(rails.size(), 4u);
  EXPECT_TRUE(rails[0].any_route);
  EXPECT_TRUE(rails[0].fixed_address);
  EXPECT_TRUE(rails[0].up);
  EXPECT_EQ(rails[0].interface, "lo") << "an address that is taken away there takes the rail away";
  EXPECT_EQ(rails[0].ifindex, 1);
  EXPECT_TRUE(rails[1].any_route);
  EXPECT_FALSE(rails[2].any_route);
  EXPECT_EQ(rails[3].interface, "");
  EXPECT_EQ(Resolved("lo", host)[0].address.text, "10.99.0.1") << "what other nodes can reach, if there is any";
  EXPECT_TRUE(Resolved("lo", host)[0].any_route);
  FakeHostNetwork plain = Server();
  EXPECT_FALSE(Resolved("lo", plain)[0].any_route) << "127.0.0.1 is nowhere but there";
  EXPECT_EQ(Names(Resolved("", host)), "eth0,eth1,eth2,eth3,eth9") << "never unasked";
}

// An IPv6 address that another node has, too, carries nothing.
TEST(ResolveRails, DuplicateAddresses) {
  FakeHostNetwork host;
  HostInterface& eth0 = host.AddNic("eth0", "0000:21:00.0", {"fe80::1", "fd00::2", "fd00::1"});
  eth0.addresses[1].state = {.duplicate = true, .tentative = true};
  std::vector<Rail> rails;
  std::vector<std::string> warnings;
  std::string error;
  ASSERT_TRUE(ResolveRails("eth0", host, {}, &rails, &error, &warnings)) << error;
  EXPECT_EQ(rails[0].address.text, "fd00::1");
  EXPECT_TRUE(rails[0].up);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0],
            "R2CC: fd00::2 of eth0 is not used: another node of its network has it, too (dadfailed); rail eth0 uses fd00::1; take it from "
            "one of them: ip address show dadfailed");
  ASSERT_TRUE(ResolveRails("fd00::2", host, {}, &rails, &error, &warnings)) << error;
  EXPECT_FALSE(rails[0].up);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("; rail fd00::2 is down; "), std::string::npos) << warnings[0];
  host.interfaces[0].addresses.pop_back();
  EXPECT_EQ(Resolved("eth0", host)[0].address.text, "fe80::1");
  EXPECT_NE(Refused("", host), "") << "a duplicate makes no NIC a rail unasked";
}

TEST(ResolveRails, AmongOneInterfacesAddresses) {
  FakeHostNetwork host;
  HostInterface& eth0 = host.AddNic("eth0", "0000:21:00.0", {"169.254.3.1", "fd00::1", "fd00::2"});
  eth0.addresses[1].state.deprecated = true;
  EXPECT_EQ(Resolved("", host)[0].address.text, "fd00::2");
  host.interfaces[0].addresses.pop_back();
  EXPECT_EQ(Resolved("", host)[0].address.text, "fd00::1") << "deprecated, and there is no other";
  host.interfaces[0].addresses.pop_back();
  EXPECT_NE(Refused("", host), "") << "link-local: not unasked";
  EXPECT_EQ(Resolved("eth0", host)[0].address.text, "169.254.3.1");
  EXPECT_EQ(Resolved("169.254.3.1", host)[0].interface, "eth0");
}

}  // namespace
}  // namespace r2cc::net
