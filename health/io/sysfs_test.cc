#include "health/io/sysfs.h"

#include <errno.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

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

TEST_F(SysfsTest, AnOpenFileStaysWithItsDevice) {
  Write("class/net/eth0/statistics/rx_errors", "1\n");
  const auto file = *RealSysfs(root_).Open("class/net/eth0/statistics/rx_errors");
  EXPECT_EQ(*file->Read(), "1");
  Write("class/net/eth0/statistics/rx_errors", "2\n");
  EXPECT_EQ(*file->Read(), "2");
  std::filesystem::rename(root_ / "class/net/eth0", root_ / "class/net/eth1");
  EXPECT_EQ(*file->Read(), "2");
  EXPECT_TRUE(absl::IsNotFound(RealSysfs(root_).Open("class/net/eth0/statistics/rx_errors").status()));
}

TEST_F(SysfsTest, KeptFilesAreOpenedAgainWhenNamesMeanOtherDevices) {
  const RealSysfs real(root_);
  KeptSysfs kept(&real);
  EXPECT_TRUE(absl::IsNotFound(kept.Read("class/net/eth0/speed").status()));
  Write("class/net/eth0/speed", "10000\n");
  EXPECT_EQ(*kept.Read("class/net/eth0/speed"), "10000");
  std::filesystem::rename(root_ / "class/net/eth0", root_ / "class/net/eth1");
  std::filesystem::create_directories(root_ / "class/net/eth0");
  Write("class/net/eth0/speed", "400000\n");
  EXPECT_EQ(*kept.Read("class/net/eth0/speed"), "10000");
  kept.Drop();
  EXPECT_EQ(*kept.Read("class/net/eth0/speed"), "400000");
  EXPECT_THAT(kept.List("class/net"), testing::ElementsAre("eth0", "eth1"));
}

// Files whose text is `text`, or that are of no device any more.
class OneDevice final : public Sysfs {
 public:
  absl::StatusOr<std::string> Read(const std::string&) const override { return absl::UnimplementedError("not kept"); }
  absl::StatusOr<std::unique_ptr<SysfsFile>> Open(const std::string& path) const override {
    ++opened;
    return std::make_unique<File>(this, path, device);
  }
  absl::StatusOr<std::string> LinkName(const std::string&) const override { return absl::NotFoundError(""); }
  std::vector<std::string> List(const std::string&) const override { return {}; }

  int device = 1;
  mutable int opened = 0;

 private:
  class File final : public SysfsFile {
   public:
    File(const OneDevice* sysfs, const std::string& path, int device) : sysfs_(sysfs), path_(path), device_(device) {}
    absl::StatusOr<std::string> Read() override {
      if (device_ != sysfs_->device) return absl::ErrnoToStatus(ENODEV, path_);
      return std::to_string(device_);
    }

   private:
    const OneDevice* const sysfs_;
    const std::string path_;
    const int device_;
  };
};

TEST(KeptSysfs, AFileIsOpenedOnceForEachDevice) {
  OneDevice sysfs;
  const KeptSysfs kept(&sysfs);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(*kept.Read("a"), "1");
  EXPECT_EQ(sysfs.opened, 1);
  sysfs.device = 2;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(*kept.Read("a"), "2");
  EXPECT_EQ(sysfs.opened, 2);
}

}  // namespace
}  // namespace r2cc::health
