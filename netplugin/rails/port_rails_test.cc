#include "netplugin/rails/port_rails.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "netplugin/rails/fake_host_network.h"

namespace r2cc::net {
namespace {

using Ports = std::vector<verbs::PortFacts>;

verbs::PortFacts InfiniBand(const std::string& device, const std::string& pci, uint64_t guid, uint8_t port = 1) {
  return {.device = device, .port = port, .pci = pci, .guid = guid, .active = true, .bits_per_s = 400e9};
}

std::string Resolved(const std::string& spec, FakeHostNetwork host, const Ports& ports, std::vector<Rail>* rails = nullptr,
                     std::vector<std::string>* warnings = nullptr) {
  std::vector<Rail> own;
  if (rails == nullptr) rails = &own;
  std::string error;
  if (!ResolveRails(spec, host, ports, rails, &error, warnings)) return error;
  std::string names;
  for (const Rail& rail : *rails) names += (names.empty() ? "" : ",") + rail.name;
  return names;
}

// A management NIC, and InfiniBand without addresses, out of order.
FakeHostNetwork Server() {
  FakeHostNetwork host;
  host.Add("lo", {"127.0.0.1"});
  host.AddNic("eno1", "0000:01:00.0", {"192.168.0.5"}).speed_mbps = 25'000;
  host.AddNic("ib0", "0000:c1:00.0");
  host.AddNic("ib1", "0000:21:00.0", {"fe80::1"});
  return host;
}

Ports ServerPorts() {
  return {InfiniBand("mlx5_0", "0000:c1:00.0", 11), InfiniBand("mlx5_1", "0000:21:00.0", 12), InfiniBand("mlx5_2", "0000:a1:00.0", 13)};
}

TEST(PortRails, PortsWithoutAnAddressAreTheRailsInPciOrder) {
  std::vector<Rail> rails;
  ASSERT_EQ(Resolved("", Server(), ServerPorts(), &rails), "mlx5_1,mlx5_2,mlx5_0") << "25 Gbit/s beside 400 is there for management";
  const Rail& rail = rails[1];
  EXPECT_EQ(rail.index, 1);
  EXPECT_EQ(rail.device, "mlx5_2");
  EXPECT_EQ(rail.port, 1);
  EXPECT_EQ(rail.interface, "");
  EXPECT_EQ(rail.ifindex, 0);
  EXPECT_TRUE(rail.address.empty());
  EXPECT_EQ(rail.guid, 13u) << "by which r2ccd knows it";
  EXPECT_EQ(rail.pci, "0000:a1:00.0");
  EXPECT_EQ(rail.pci_path, "/sys/devices/pci0000:00/0000:a1:00.0");
  EXPECT_EQ(rail.speed_mbps, 400'000);
  EXPECT_TRUE(rail.up);
}

TEST(PortRails, OneWhoseInterfaceHasAnAddressIsThatInterface) {
  FakeHostNetwork host = Server();
  host.interfaces[2].addresses.push_back(*ParseIpAddress("10.0.0.1"));
  host.interfaces[2].speed_mbps = 400'000;
  std::vector<Rail> rails;
  ASSERT_EQ(Resolved("", host, ServerPorts(), &rails), "mlx5_1,mlx5_2,ib0");
  EXPECT_EQ(rails[2].device, "");
  EXPECT_EQ(rails[2].address.text, "10.0.0.1");
}

TEST(PortRails, RocePortsOfInterfacesThatAreRailsAreNot) {
  FakeHostNetwork host;
  host.AddNic("eth0", "0000:21:00.0", {"10.0.0.1"});
  host.AddNic("eth1", "0000:41:00.0", {"10.0.1.1"});
  const Ports ports = {{.device = "mlx5_0", .pci = "0000:21:00.0", .interfaces = {1}, .active = true, .bits_per_s = 100e9},
                       {.device = "mlx5_1", .pci = "0000:41:00.0", .interfaces = {2}, .active = true, .bits_per_s = 100e9}};
  EXPECT_EQ(Resolved("", host, ports), "eth0,eth1");
}

// The bond has the address, and is no NIC beside one that has another.
TEST(PortRails, TheDeviceOfABondIsARailNextToNics) {
  FakeHostNetwork host;
  host.AddNic("eth0", "0000:21:00.0");
  host.AddNic("eth1", "0000:21:00.1");
  host.Add("bond0", {"10.0.0.1"});
  const Ports ports = {{.device = "mlx5_bond_0", .pci = "0000:21:00.0", .interfaces = {3}, .active = true, .bits_per_s = 200e9}};
  EXPECT_EQ(Resolved("", host, ports), "bond0") << "which goes by that device";
  host.AddNic("eno1", "0000:01:00.0", {"192.168.0.5"}).speed_mbps = 10'000;
  EXPECT_EQ(Resolved("", host, ports), "mlx5_bond_0");
}

TEST(PortRails, WithoutAnActivePortTheErrorStatesIt) {
  FakeHostNetwork host;
  host.AddNic("ib0", "0000:c1:00.0");
  Ports ports = {InfiniBand("mlx5_0", "0000:c1:00.0", 11)};
  ports[0].active = false;
  EXPECT_EQ(Resolved("", host, ports),
            "R2CC_RAILS is not set and this node has no NIC with an IP address, and no RDMA port that is active: name interfaces or "
            "addresses in R2CC_RAILS; there are: ib0 (no address), mlx5_0 (RDMA)");
}

TEST(PortRails, APortThatIsDownIsNoRailUnlessNamedAndALineStatesIt) {
  Ports ports = ServerPorts();
  ports[1].active = false;
  const std::string left_out =
      "R2CC: the RDMA port mlx5_1 is down and no rail: rails behind it have other numbers than at a peer where it is up; name all rails in "
      "R2CC_RAILS, or leave it out there, too (^mlx5_1)";
  const std::string rail_down = "R2CC: rail mlx5_1 is down: its RDMA port is not active; it comes in when that is up";
  const struct {
    const char* spec;
    const char* rails;
    std::vector<std::string> warnings;
  } cases[] = {
      {"", "mlx5_2,mlx5_0", {left_out}},
      {"^mlx5_0", "mlx5_2", {left_out}},
      {"^mlx5_1", "mlx5_2,mlx5_0", {}},
      {"^ib1", "mlx5_2,mlx5_0", {}},
      {"mlx5_0", "mlx5_0", {}},
      {"mlx5_1", "mlx5_1", {rail_down}},
      {"mlx5_*", "mlx5_0,mlx5_1,mlx5_2", {rail_down}},
  };
  for (const auto& c : cases) {
    std::vector<std::string> warnings;
    EXPECT_EQ(Resolved(c.spec, Server(), ports, nullptr, &warnings), c.rails) << c.spec;
    EXPECT_EQ(warnings, c.warnings) << c.spec;
  }
}

TEST(PortRails, PatternsStandForWhatTheyFitByName) {
  FakeHostNetwork host = Server();
  host.AddNic("ib10", "0000:e1:00.0");
  const Ports two = {InfiniBand("mlx4_0", "0000:c1:00.0", 21, 1), InfiniBand("mlx4_0", "0000:c1:00.0", 22, 2),
                     InfiniBand("mlx4_10", "0000:a1:00.0", 23, 1)};
  const struct {
    const char* spec;
    const Ports ports;
    const char* rails;
  } cases[] = {
      {"mlx5_*", ServerPorts(), "mlx5_0,mlx5_1,mlx5_2"},
      {"mlx5_?", ServerPorts(), "mlx5_0,mlx5_1,mlx5_2"},
      {"mlx5_2,mlx5_*", ServerPorts(), "mlx5_2,mlx5_0,mlx5_1"},
      {"*", ServerPorts(), "eno1,ib0,ib1,ib10,mlx5_2"},
      {"ib1,mlx5_*", ServerPorts(), "ib1,mlx5_0,mlx5_2"},
      {"mlx4_*", two, "mlx4_0:1,mlx4_0:2,mlx4_10"},
      {"mlx4_*:1", two, "mlx4_0:1,mlx4_10"},
      {"*2", two,
       "R2CC_RAILS: *2 fits nothing on this node; there are: lo (127.0.0.1), eno1 (192.168.0.5), ib0 (no address), ib1 (fe80::1), "
       "ib10 (no address), mlx4_0:1 (RDMA), mlx4_0:2 (RDMA), mlx4_10 (RDMA)"},
      {"mlx5_*,mlx5_0", ServerPorts(), "R2CC_RAILS: mlx5_0 is there twice (as mlx5_0): each rail is named once"},
      {"^mlx5_*", ServerPorts(), "eno1"},
      {"mlx5_[01]", ServerPorts(),
       "R2CC_RAILS: mlx5_[01] does not exist on this node; there are: lo (127.0.0.1), eno1 (192.168.0.5), "
       "ib0 (no address), ib1 (fe80::1), ib10 (no address), mlx5_0 (RDMA), mlx5_1 (RDMA), mlx5_2 (RDMA)"},
  };
  for (const auto& c : cases) EXPECT_EQ(Resolved(c.spec, host, c.ports), c.rails) << c.spec;
}

TEST(PortRails, EachPortOfADeviceIsARail) {
  const Ports ports = {InfiniBand("mlx4_0", "0000:c1:00.0", 21, 1), InfiniBand("mlx4_0", "0000:c1:00.0", 22, 2)};
  std::vector<Rail> rails;
  ASSERT_EQ(Resolved("", Server(), ports, &rails), "mlx4_0:1,mlx4_0:2");
  EXPECT_EQ(rails[1].port, 2);
  EXPECT_EQ(Resolved("mlx4_0", Server(), ports), "mlx4_0:1,mlx4_0:2");
  EXPECT_EQ(Resolved("mlx4_0:2", Server(), ports), "mlx4_0:2");
  EXPECT_EQ(Resolved("mlx4_0:2,mlx4_0:1", Server(), ports), "mlx4_0:2,mlx4_0:1");
}

TEST(PortRails, NamedPortsKeepTheirOrderAmongInterfaces) {
  EXPECT_EQ(Resolved("mlx5_2,eno1,mlx5_0:1", Server(), ServerPorts()), "mlx5_2,eno1,mlx5_0");
}

TEST(PortRails, ExcludedDevicesPortsAndInterfacesAreNone) {
  EXPECT_EQ(Resolved("^mlx5_0", Server(), ServerPorts()), "mlx5_1,mlx5_2");
  EXPECT_EQ(Resolved("^mlx5_1:1,mlx5_0", Server(), ServerPorts()), "mlx5_2");
  EXPECT_EQ(Resolved("^ib0", Server(), ServerPorts()), "mlx5_1,mlx5_2") << "nor is the port of one that was left out";
}

TEST(PortRails, SixteenDevices) {
  FakeHostNetwork host = Server();
  Ports ports;
  for (int i = 15; i >= 0; --i)
    ports.push_back(InfiniBand("mlx5_" + std::to_string(i), "00" + std::to_string(10 + i) + ":00:00.0", static_cast<uint64_t>(100 + i)));
  std::vector<Rail> rails;
  Resolved("", host, ports, &rails);
  ASSERT_EQ(rails.size(), 16u);
  for (size_t i = 0; i < rails.size(); ++i) EXPECT_EQ(rails[i].device, "mlx5_" + std::to_string(i));
}

TEST(PortRails, APortAndItsInterfaceAreOneRail) {
  EXPECT_EQ(Resolved("ib0,mlx5_0", Server(), ServerPorts()), "R2CC_RAILS: mlx5_0 is there twice (as ib0): each rail is named once");
  EXPECT_EQ(Resolved("mlx5_0,ib0", Server(), ServerPorts()), "R2CC_RAILS: ib0 is there twice (as mlx5_0): each rail is named once");
  EXPECT_EQ(Resolved("mlx5_0,mlx5_0:1", Server(), ServerPorts()),
            "R2CC_RAILS: mlx5_0:1 is there twice (as mlx5_0): each rail is named once");
}

TEST(PortRails, AMissingPortIsNamedWithThePortsThatExist) {
  for (const char* absent : {"mlx5_9", "mlx5_0:2", "mlx5_0:"})
    EXPECT_EQ(Resolved(absent, Server(), ServerPorts()),
              std::string("R2CC_RAILS: ") + absent + " does not exist on this node; there are: lo (127.0.0.1), eno1 (192.168.0.5), " +
                  "ib0 (no address), ib1 (fe80::1), mlx5_0 (RDMA), mlx5_1 (RDMA), mlx5_2 (RDMA)");
}

}  // namespace
}  // namespace r2cc::net
