#include "base/core/verbs/device_sysfs.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace r2cc::verbs {
namespace {

class DeviceSysfsTest : public testing::Test {
 protected:
  const std::string sysfs_ = std::string(std::getenv("TEST_TMPDIR")) + "/sys";
  const std::string devices_ = sysfs_ + "/class/infiniband/";
};

TEST_F(DeviceSysfsTest, ADeviceOfABusHasADriverAndAFunction) {
  std::filesystem::create_directories(sysfs_ + "/devices/pci0000:80/0000:81:00.1");
  std::filesystem::create_directories(devices_ + "mlx5_1");
  std::filesystem::create_directory_symlink("../../../devices/pci0000:80/0000:81:00.1", devices_ + "mlx5_1/device");
  std::filesystem::create_directory_symlink("../../../bus/pci/drivers/mlx5_core", sysfs_ + "/devices/pci0000:80/0000:81:00.1/driver");
  const DeviceSysfs found = ReadSysfs(sysfs_, "mlx5_1");
  EXPECT_EQ(found.driver, "mlx5_core");
  EXPECT_EQ(found.pci, "0000:81:00.1");
  EXPECT_EQ(found.interface, "");
}

TEST_F(DeviceSysfsTest, SoftRoceNamesItsInterface) {
  std::filesystem::create_directories(devices_ + "rxe0");
  std::ofstream(devices_ + "rxe0/parent") << "eth1\n";
  const DeviceSysfs found = ReadSysfs(sysfs_, "rxe0");
  EXPECT_EQ(found.driver, "rdma_rxe");
  EXPECT_EQ(found.interface, "eth1");
  EXPECT_EQ(found.pci, "");
}

TEST_F(DeviceSysfsTest, NothingIsKnownOfOthers) {
  std::filesystem::create_directories(devices_ + "siw0");
  for (const char* const name : {"siw0", "nowhere"}) {
    const DeviceSysfs found = ReadSysfs(sysfs_, name);
    EXPECT_EQ(found.driver + found.pci + found.interface, "");
  }
}

}  // namespace
}  // namespace r2cc::verbs
