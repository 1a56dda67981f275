#include "tests/rigs/hardware/hardware.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace r2cc::rig {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

class HardwareTest : public testing::Test {
 protected:
  HardwareTest() {
    std::filesystem::remove_all(sysfs_);
    for (const auto& [device, interface] : {std::pair("mlx5_0", "eth2"), {"mlx5_1", "eth3"}, {"mlx5_2", "eth4"}, {"mlx5_3", "eth5"}}) {
      const auto folder = std::filesystem::path(sysfs_) / "class/infiniband" / device / "ports/1/gid_attrs/ndevs";
      std::filesystem::create_directories(folder);
      std::ofstream(folder / "0") << interface << "\n";
      std::ofstream(folder / "1");
    }
    std::ofstream(sysfs_ + "/class/infiniband/mlx5_0/fw_ver") << "22.31.1014\n";
    std::filesystem::create_directories(sysfs_ + "/class/infiniband/ib0/ports/1");
  }
  std::string Refused(const char* text) {
    std::vector<HardwareCable> cables;
    std::string error;
    EXPECT_FALSE(FindHardware(text, sysfs_, &cables, &error)) << text;
    EXPECT_EQ(error.find('\n'), std::string::npos);
    return error;
  }

  const std::string sysfs_ = testing::TempDir() + "hardware_sysfs";
};

TEST_F(HardwareTest, EachItemIsACable) {
  std::vector<HardwareCable> cables;
  std::string error;
  ASSERT_TRUE(FindHardware("mlx5_0+mlx5_2 mlx5_1+mlx5_3", sysfs_, &cables, &error)) << error;
  ASSERT_THAT(cables, SizeIs(2));
  EXPECT_EQ(cables[0].ends[0].device, "mlx5_0");
  EXPECT_EQ(cables[0].ends[0].interface, "eth2");
  EXPECT_EQ(cables[0].ends[1].device, "mlx5_2");
  EXPECT_EQ(cables[1].ends[1].interface, "eth5");
  EXPECT_THAT(Describe(cables[0].ends[0], sysfs_), HasSubstr("mlx5_0 on eth2: driver of no bus"));
  EXPECT_THAT(Describe(cables[0].ends[0], sysfs_), HasSubstr("firmware 22.31.1014"));
}

TEST_F(HardwareTest, NothingIsNone) {
  std::vector<HardwareCable> cables;
  std::string error;
  for (const char* const text : {static_cast<const char*>(nullptr), "", " "}) {
    EXPECT_TRUE(FindHardware(text, sysfs_, &cables, &error));
    EXPECT_THAT(cables, SizeIs(0));
  }
}

TEST_F(HardwareTest, AnErrorIsNamedWithAdvice) {
  for (const char* const text : {"mlx5_0", "mlx5_0+", "+mlx5_0", "mlx5_0+mlx5_1+mlx5_2", "mlx5_0+../mlx5_1", "mlx5_0,mlx5_1"})
    EXPECT_THAT(Refused(text), HasSubstr(std::string("R2CC_HW: '") + text + "' is not DEVICE+DEVICE, the two ends of a cable, as in"));
  EXPECT_EQ(Refused("mlx5_0+mlx5_9"), "R2CC_HW: this machine has no RDMA device 'mlx5_9'; it has: ib0 mlx5_0 mlx5_1 mlx5_2 mlx5_3");
  EXPECT_EQ(Refused("mlx5_0+mlx5_0"), "R2CC_HW: mlx5_0 stands there twice: it has one cable");
  EXPECT_EQ(Refused("mlx5_0+ib0"), "R2CC_HW: no network interface is behind port 1 of ib0: set its interface up");
}

}  // namespace
}  // namespace r2cc::rig
