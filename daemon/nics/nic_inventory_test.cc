#include "daemon/nics/nic_inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "health/io/fake_sysfs.h"

namespace r2cc::daemon {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(NicInventory, FactsThatSysShowsToEverybody) {
  health::FakeSysfs sysfs;
  sysfs.Set("class/net/eth0/device/driver", "../../../bus/pci/drivers/mlx5_core");
  sysfs.Set("class/infiniband/mlx5_0/fw_ver", "28.39.1002");
  sysfs.Set("bus/pci/slots/2/address", "0000:8");
  sysfs.Set("bus/pci/slots/4-1/address", "0000:81:00");
  const v1::NicInventory inventory = InventoryOf(sysfs, "eth0", "mlx5_0", "0000:81:00.1");
  EXPECT_EQ(inventory.driver(), "mlx5_core");
  EXPECT_EQ(inventory.firmware(), "28.39.1002");
  EXPECT_EQ(inventory.slot(), "4-1");
  EXPECT_EQ(inventory.serial(), "");
  EXPECT_THAT(inventory.missing(), Contains(HasSubstr("lspci -vv -s 0000:81:00.1")));
  EXPECT_THAT(inventory.missing(), Contains(HasSubstr("lldpcli show neighbors ports eth0")));
  EXPECT_THAT(inventory.missing(), Not(Contains(StartsWith("slot"))));
}

TEST(NicInventory, AMissingFactHasItsReason) {
  const v1::NicInventory inventory = InventoryOf(health::FakeSysfs(), "veth0", "", "");
  EXPECT_EQ(inventory.driver() + inventory.firmware() + inventory.slot(), "");
  for (const char* const what : {"driver: ", "firmware: ", "slot, serial: ", "switch port: "})
    EXPECT_THAT(inventory.missing(), Contains(StartsWith(what)));
}

TEST(NicInventory, ADeviceWithoutAnInterfaceIsFoundByItsOwnName) {
  health::FakeSysfs sysfs;
  sysfs.Set("class/infiniband/mlx5_3/device/driver", "../mlx5_core");
  sysfs.Set("class/infiniband/mlx5_3/fw_ver", "28.39.1002\033[2J");
  const v1::NicInventory inventory = InventoryOf(sysfs, "", "mlx5_3", "0000:01:00.0");
  EXPECT_EQ(inventory.driver(), "mlx5_core");
  EXPECT_EQ(inventory.firmware().find('\033'), std::string::npos);
  EXPECT_THAT(inventory.missing(), Not(Contains(StartsWith("switch port"))));
}

}  // namespace
}  // namespace r2cc::daemon
