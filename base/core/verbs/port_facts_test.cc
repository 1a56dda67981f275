#include "base/core/verbs/port_facts.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/core/verbs/fake_fabric.h"
#include "base/core/verbs/fake_verbs.h"

namespace r2cc::verbs {
namespace {

const std::vector<PortFacts> kPorts = {
    {.device = "mlx5_0", .pci = "0000:81:00.0", .interfaces = {3, 7}},
    {.device = "mlx5_1", .pci = "0000:81:00.1"},
    {.device = "mlx4_0", .port = 1, .pci = "0000:c1:00.0"},
    {.device = "mlx4_0", .port = 2, .pci = "0000:c1:00.0", .interfaces = {9}},
    {.device = "rxe0", .interface = "eth5"},
};

std::string Named(const InterfaceFacts& interface) {
  const auto port = PortOfInterface(interface, kPorts);
  return port ? port->device + ":" + std::to_string(port->port) : "";
}

TEST(PortFacts, GidsNameTheInterface) {
  EXPECT_EQ(Named({3, "eth0", "0000:81:00.0"}), "mlx5_0:1");
  EXPECT_EQ(Named({7, "eth0.100", ""}), "mlx5_0:1");
  EXPECT_EQ(Named({9, "eth9", "0000:c1:00.0"}), "mlx4_0:2");
}

TEST(PortFacts, SoftRoceNamesTheInterfaceThatItUses) { EXPECT_EQ(Named({12, "eth5", ""}), "rxe0:1"); }

TEST(PortFacts, ThePciFunctionDecidesWhereNoGidDoes) {
  EXPECT_EQ(Named({4, "ib1", "0000:81:00.1"}), "mlx5_1:1");
  // A port of the same function whose GIDs belong to others: a representor.
  EXPECT_EQ(Named({20, "pf0vf0", "0000:81:00.0"}), "");
  // Two ports: nobody knows which.
  EXPECT_EQ(Named({5, "ib2", "0000:c1:00.0"}), "");
}

TEST(PortFacts, NoInterfaceOrNoDeviceIsNoRail) {
  EXPECT_EQ(Named({0, "", "0000:81:00.1"}), "");
  EXPECT_EQ(Named({4, "eth4", ""}), "");
}

TEST(PortFacts, APortNamesTheInterfacesOfItsGids) {
  FakeTimeline time;
  FakeFabric fabric(&time);
  FakeVerbs verbs(&fabric, 0);
  fabric.AddDevice(0, "mlx5_0", "mlx5_core", 2);
  fabric.SetGid({0, "mlx5_0", 2}, {.index = 3, .gid = {1}, .type = GidType::kRoceV2, .interface_index = 42});
  ContextId context{};
  int async_fd = -1;
  ASSERT_EQ(verbs.Open("mlx5_0", &context, &async_fd), 0);
  const PortFacts facts = ReadPortFacts(&verbs, context, {.name = "mlx5_0", .driver = "", .pci = "0000:81:00.0"}, 2);
  PortInfo info;
  ASSERT_EQ(verbs.QueryPort(context, 2, &info), 0);
  EXPECT_EQ(facts, (PortFacts{.device = "mlx5_0",
                              .port = 2,
                              .pci = "0000:81:00.0",
                              .interface = "",
                              .interfaces = {2, 42},
                              .guid = facts.guid,
                              .active = true,
                              .bits_per_s = info.bits_per_second}));
  fabric.SetGid({0, "mlx5_0", 2}, {.index = 0, .gid = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 2, 0xc9, 3, 0, 0x12, 0x34, 0x56}});
  EXPECT_EQ(ReadPortFacts(&verbs, context, {.name = "mlx5_0", .driver = ""}, 2).guid, 0x0002c90300123456u);
}

}  // namespace
}  // namespace r2cc::verbs
