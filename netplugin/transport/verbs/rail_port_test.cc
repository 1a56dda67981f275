#include "netplugin/transport/verbs/rail_port.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "netplugin/transport/verbs/fake_types.h"

namespace r2cc::net::verbs {
namespace {

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

TEST(RailPort, EachThatDoesNotOpenIsNamed) {
  FakeTimeline time;
  FakeFabric fabric(&time);
  FakeVerbs fake(&fabric, 0);
  FaultyVerbs faulty(&fake);
  for (const char* const device : {"mlx5_0", "mlx5_1", "mlx5_2"}) fabric.AddDevice(0, device);
  faulty.FailCall(Call::kOpen, 1, EACCES, 1);
  std::string error;
  EXPECT_EQ(ListPorts(&faulty, &error).size(), 1u);
  EXPECT_EQ(error,
            "R2CC: cannot open the RDMA devices mlx5_0, mlx5_1: Permission denied; allow this user to open /dev/infiniband/uverbs*, or set "
            "R2CC_TRANSPORT=tcp");
  FaultyVerbs first(&faulty);
  first.FailCall(Call::kOpen, 1, EIO);
  faulty.FailCall(Call::kOpen, 1, EACCES);
  EXPECT_EQ(ListPorts(&first, &error).size(), 1u);
  EXPECT_EQ(error,
            "R2CC: cannot open the RDMA device mlx5_0: Input/output error; dmesg may show the cause; R2CC_TRANSPORT=tcp uses no RDMA; "
            "cannot open the RDMA device mlx5_1: Permission denied; allow this user to open /dev/infiniband/uverbs*, or set "
            "R2CC_TRANSPORT=tcp");
}

}  // namespace
}  // namespace r2cc::net::verbs
