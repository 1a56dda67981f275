#include "health/io/sysfs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace r2cc::health {
namespace {

class SysfsTest : public testing::Test {
 protected:
  SysfsTest() : root_(std::filesystem::path(testing::TempDir()) / ("sysfs-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(root_ / "class/net/eth0/statistics");
  }
  ~SysfsTest() override { std::filesystem::remove_all(root_); }
  void Write(const std::string& path, const std::string& text) { std::ofstream(root_ / path) << text; }

  const std::filesystem::path root_;
};

TEST_F(SysfsTest, ReadsATextWithoutItsNewline) {
  Write("class/net/eth0/operstate", "up\n");
  EXPECT_EQ(*RealSysfs(root_).Read("class/net/eth0/operstate"), "up");
}

TEST_F(SysfsTest, AMissingFileIsNotFoundAndNamed) {
  const auto text = RealSysfs(root_).Read("class/net/eth9/operstate");
  EXPECT_TRUE(absl::IsNotFound(text.status()));
  EXPECT_THAT(std::string(text.status().message()), testing::HasSubstr("class/net/eth9/operstate"));
  EXPECT_FALSE(RealSysfs(root_).Read("class/net").ok());
}

TEST_F(SysfsTest, ALargeFileIsCut) {
  Write("large", std::string(3 * kSysfsFileBytesMax, 'x'));
  EXPECT_EQ(RealSysfs(root_).Read("large")->size(), kSysfsFileBytesMax);
}

TEST_F(SysfsTest, LinksAndFolders) {
  std::filesystem::create_symlink("../../../devices/pci0000:80/0000:81:00.0", root_ / "class/net/eth0/device");
  EXPECT_EQ(*RealSysfs(root_).LinkName("class/net/eth0/device"), "0000:81:00.0");
  EXPECT_FALSE(RealSysfs(root_).LinkName("class/net/eth0/statistics").ok());
  EXPECT_THAT(RealSysfs(root_).List("class/net/eth0"), testing::ElementsAre("device", "statistics"));
  EXPECT_TRUE(RealSysfs(root_).List("class/infiniband").empty());
}

}  // namespace
}  // namespace r2cc::health
