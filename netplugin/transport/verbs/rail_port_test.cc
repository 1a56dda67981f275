#include "netplugin/transport/verbs/rail_port.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "base/core/verbs/fake_fabric.h"
#include "base/core/verbs/fake_verbs.h"
#include "base/core/verbs/faulty_verbs.h"

namespace r2cc::net::verbs {
namespace {

Rail RailOf(const std::string& interface, int ifindex, const std::string& pci = "") {
  return {.name = interface, .interface = interface, .ifindex = ifindex, .pci = pci};
}

const std::vector<PortFacts> kPorts = {
    {.device = "mlx5_0", .pci = "0000:81:00.0", .interfaces = {3, 7}},
    {.device = "mlx5_1", .pci = "0000:81:00.1"},
    {.device = "mlx4_0", .port = 1, .pci = "0000:c1:00.0"},
    {.device = "mlx4_0", .port = 2, .pci = "0000:c1:00.0", .interfaces = {9}},
    {.device = "rxe0", .interface = "eth5"},
};

std::string Named(const Rail& rail) {
  const auto port = PortOfRail(rail, kPorts);
  return port ? port->device + ":" + std::to_string(port->port) : "";
}

TEST(RailPort, GidsNameTheInterface) {
  EXPECT_EQ(Named(RailOf("eth0", 3, "0000:81:00.0")), "mlx5_0:1");
  EXPECT_EQ(Named(RailOf("eth0.100", 7)), "mlx5_0:1");
  EXPECT_EQ(Named(RailOf("eth9", 9, "0000:c1:00.0")), "mlx4_0:2");
}

TEST(RailPort, SoftRoceNamesTheInterfaceThatItStandsOn) { EXPECT_EQ(Named(RailOf("eth5", 12)), "rxe0:1"); }

TEST(RailPort, ThePciFunctionDecidesWhereNoGidDoes) {
  EXPECT_EQ(Named(RailOf("ib1", 4, "0000:81:00.1")), "mlx5_1:1");
  // Of the same function, but its GIDs are of others: a representor.
  EXPECT_EQ(Named(RailOf("pf0vf0", 20, "0000:81:00.0")), "");
  // Two ports: nobody knows which.
  EXPECT_EQ(Named(RailOf("ib2", 5, "0000:c1:00.0")), "");
}

TEST(RailPort, WhatHasNoInterfaceOrNoDeviceIsNone) {
  EXPECT_EQ(Named(RailOf("", 0, "0000:81:00.1")), "");
  EXPECT_EQ(Named(RailOf("eth4", 4)), "");
}

TEST(RailPort, AllPortsOfAllDevicesThatOpen) {
  FakeTimeline time;
  FakeFabric fabric(&time);
  FakeVerbs fake(&fabric, 0);
  FaultyVerbs faulty(&fake);
  fabric.AddDevice(0, "mlx5_0", "mlx5_core", 2);
  fabric.AddDevice(0, "mlx5_1");
  fabric.SetGid({0, "mlx5_0", 2}, {.index = 3, .gid = {1}, .type = GidType::kRoceV2, .interface_index = 42});
  std::string error;
  const std::vector<PortFacts> ports = ListPorts(&faulty, &error);
  EXPECT_EQ(error, "");
  ASSERT_EQ(ports.size(), 3u);
  EXPECT_EQ(ports[1].device, "mlx5_0");
  EXPECT_EQ(ports[1].port, 2);
  EXPECT_EQ(ports[1].interfaces, (std::vector<uint32_t>{2, 42}));
  EXPECT_EQ(ports[2].device, "mlx5_1");

  faulty.FailCall(Call::kOpen, 1, EACCES);
  EXPECT_EQ(ListPorts(&faulty, &error).size(), 1u);
  EXPECT_NE(error.find("cannot open the RDMA device mlx5_0: Permission denied; allow this user"), std::string::npos) << error;
}

}  // namespace
}  // namespace r2cc::net::verbs
