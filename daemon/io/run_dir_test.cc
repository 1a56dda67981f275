#include "daemon/io/run_dir.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/run_dirs.h"

namespace r2cc::daemon {
namespace {

class RunDirTest : public testing::Test {
 protected:
  ~RunDirTest() override { std::filesystem::remove_all(folder_); }
  static mode_t ModeOf(const std::string& path) {
    struct stat there {};
    EXPECT_EQ(stat(path.c_str(), &there), 0) << path;
    return there.st_mode & 07777;
  }

  static std::string MakeFolder() {
    std::string folder = testing::TempDir() + "/run-dir.XXXXXX";
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    return folder;
  }

  const std::string folder_ = MakeFolder();
  const std::string run_dir_ = folder_ + "/run";
};

TEST_F(RunDirTest, JobsEnterTheOneAndOperatorsTheOther) {
  for (int again = 0; again < 2; ++again) {
    ASSERT_TRUE(MakeRunDir(run_dir_).ok());
    ASSERT_TRUE(MakeControlDir(run_dir_).ok());
    EXPECT_EQ(ModeOf(run_dir_), 0755u);
    EXPECT_EQ(ModeOf(folder_ + "/run-control"), 0750u);
  }
  chmod((folder_ + "/run-control").c_str(), 0711);
  ASSERT_TRUE(MakeControlDir(run_dir_).ok());
  EXPECT_EQ(ModeOf(folder_ + "/run-control"), 0711u) << "an operator's choice";
  EXPECT_FALSE(MakeControlDir(folder_ + "/nowhere/run").ok());
}

TEST_F(RunDirTest, TheOldPathLeadsToTheSocket) {
  ASSERT_TRUE(MakeRunDir(run_dir_ + "/").ok());
  ASSERT_TRUE(MakeControlDir(run_dir_ + "/").ok());
  std::ofstream(ControlSocket(run_dir_)) << "socket";
  std::ofstream(OldControlSocket(run_dir_)) << "of a daemon of 0.2.0 that died";
  EXPECT_FALSE(IsOldControlSocketLinked(run_dir_));
  ASSERT_TRUE(LinkOldControlSocket(run_dir_).ok());
  EXPECT_TRUE(IsOldControlSocketLinked(run_dir_));
  EXPECT_TRUE(std::filesystem::equivalent(OldControlSocket(run_dir_), ControlSocket(run_dir_)));
  // Both are mounted elsewhere, or the run directory alone.
  std::filesystem::create_directory(folder_ + "/elsewhere");
  std::filesystem::rename(run_dir_, folder_ + "/elsewhere/run");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/elsewhere/run/r2ccd.sock"));
  std::filesystem::rename(folder_ + "/run-control", folder_ + "/elsewhere/run-control");
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/elsewhere/run/r2ccd.sock"));
  UnlinkOldControlSocket(folder_ + "/elsewhere/run");
  EXPECT_FALSE(std::filesystem::is_symlink(folder_ + "/elsewhere/run/r2ccd.sock"));
}

TEST(RunDirs, SocketIdentity) {
  EXPECT_EQ(ControlSocket("/run/r2cc//"), "/run/r2cc-control/r2ccd.sock");
  EXPECT_EQ(RunDirOf("/run/r2cc-control/r2ccd.sock"), "/run/r2cc");
  EXPECT_EQ(RunDirOf("/run/r2cc/r2ccd.sock"), "/run/r2cc");
  EXPECT_EQ(RunDirOf("r2ccd.sock"), ".");
  EXPECT_EQ(RunDirOf("/r2ccd.sock"), "/");
  EXPECT_EQ(RunDirOf("/-control/r2ccd.sock"), "/");
}

}  // namespace
}  // namespace r2cc::daemon
