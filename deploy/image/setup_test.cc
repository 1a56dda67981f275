#include "deploy/image/setup.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace r2cc::setup {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr Owner kDaemon{64750, 64751};
constexpr uid_t kOtherUser = 1234;

TEST(ParseTest, OwnersAreTwoNumbers) {
  std::string error;
  EXPECT_EQ(ParseOwner("64750:64751", &error)->uid, 64750u);
  EXPECT_EQ(ParseOwner("64750:64751", &error)->gid, 64751u);
  for (const char* text : {"", "64750", "r2ccd:r2cc", "1:", ":1", "1:2:3", "-1:1", "4294967295:1", "4294967296:1"}) {
    EXPECT_FALSE(ParseOwner(text, &error).has_value()) << text;
    EXPECT_THAT(error, AllOf(HasSubstr(text), HasSubstr("UID:GID")));
  }
}

TEST(ParseTest, DirectoriesAreAPathAndAMode) {
  std::string error;
  EXPECT_EQ(ParseDirectory("/run/r2cc:0755", &error)->path, "/run/r2cc");
  EXPECT_EQ(ParseDirectory("/run/r2cc:750", &error)->mode, 0750u);
  for (const char* text : {"", "/run/r2cc", "run/r2cc:0755", ":0755", "/x:9", "/x:0789", "/x:4755", "/x:00755", "/x:"}) {
    EXPECT_FALSE(ParseDirectory(text, &error).has_value()) << text;
    EXPECT_THAT(error, AllOf(HasSubstr(text), HasSubstr("PATH:MODE")));
  }
}

class FoldersTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::string(std::getenv("TEST_TMPDIR")) + "/setup-XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  struct stat About(const std::string& name) const {
    struct stat about {};
    EXPECT_EQ(lstat((folder_ + "/" + name).c_str(), &about), 0);
    return about;
  }
  std::string folder_, error_;
};

class HandOverTest : public FoldersTest {
 protected:
  void SetUp() override {
    FoldersTest::SetUp();
    if (geteuid() != 0 || chown(folder_.c_str(), kOtherUser, kOtherUser) != 0)
      GTEST_SKIP() << "needs root: gives directories to other users";
  }
};

TEST_F(HandOverTest, MissingDirectoriesAndThoseOfRootAreHandedOver) {
  ASSERT_EQ(mkdir((folder_ + "/roots").c_str(), 0700), 0);
  for (const char* name : {"missing", "roots"}) {
    const Directory directory{folder_ + "/" + name, 0750};
    ASSERT_TRUE(HandOver(directory, kDaemon, &error_)) << error_;
    const struct stat about = About(name);
    EXPECT_EQ(about.st_uid, kDaemon.uid);
    EXPECT_EQ(about.st_gid, kDaemon.gid);
    EXPECT_EQ(about.st_mode & 07777, 0750u);
    EXPECT_TRUE(HandOver(directory, kDaemon, &error_)) << "a second start of the pod";
  }
}

TEST_F(HandOverTest, DirectoriesOfTheDaemonStayAsTheyAre) {
  ASSERT_EQ(mkdir((folder_ + "/its").c_str(), 0700), 0);
  ASSERT_EQ(chown((folder_ + "/its").c_str(), kDaemon.uid, 7), 0);
  ASSERT_TRUE(HandOver({folder_ + "/its", 0755}, kDaemon, &error_)) << error_;
  EXPECT_EQ(About("its").st_mode & 07777, 0700u);
  EXPECT_EQ(About("its").st_gid, 7u);
}

TEST_F(HandOverTest, ADirectoryOfAnotherUserIsRefused) {
  const std::string path = folder_ + "/his";
  ASSERT_EQ(mkdir(path.c_str(), 0755), 0);
  ASSERT_EQ(chown(path.c_str(), kOtherUser, kOtherUser), 0);
  EXPECT_FALSE(HandOver({path, 0755}, kDaemon, &error_));
  EXPECT_THAT(error_, AllOf(HasSubstr(path), HasSubstr("user 1234"), HasSubstr("another r2ccd")));
  EXPECT_EQ(About("his").st_uid, kOtherUser);
}

TEST_F(HandOverTest, NothingIsGivenAwayThroughALink) {
  ASSERT_EQ(mkdir((folder_ + "/roots").c_str(), 0755), 0);
  ASSERT_EQ(symlink((folder_ + "/roots").c_str(), (folder_ + "/link").c_str()), 0);
  EXPECT_FALSE(HandOver({folder_ + "/link", 0755}, kDaemon, &error_));
  EXPECT_THAT(error_, HasSubstr("is no directory"));
  EXPECT_EQ(About("roots").st_uid, 0u);
}

class CopyTest : public FoldersTest {
 protected:
  static std::string Read(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  static std::vector<std::string> NamesIn(const std::string& folder) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
};

TEST_F(CopyTest, AFileIsReplacedAndWhoHasItOpenKeepsIt) {
  const std::string from = folder_ + "/plugin.so", to = folder_ + "/volume";
  ASSERT_EQ(mkdir(to.c_str(), 0755), 0);
  std::ofstream(from) << "old";
  ASSERT_TRUE(CopyInto(from, to, &error_)) << error_;
  std::ifstream open(to + "/plugin.so");
  std::ofstream(from) << "new";
  ASSERT_TRUE(CopyInto(from, to, &error_)) << error_;
  EXPECT_EQ(Read(to + "/plugin.so"), "new");
  std::string held;
  open >> held;
  EXPECT_EQ(held, "old");
  EXPECT_EQ(About("volume/plugin.so").st_mode & 07777, 0755u);
  EXPECT_EQ(NamesIn(to), std::vector<std::string>{"plugin.so"});
}

// Two pods of a node start with the same directory.
TEST_F(CopyTest, TwoAtOnceDoNotDisturbEachOther) {
  const std::string from = folder_ + "/plugin.so", to = folder_ + "/volume";
  ASSERT_EQ(mkdir(to.c_str(), 0755), 0);
  std::ofstream(from) << std::string(1 << 20, 'x');
  std::vector<std::thread> pods;
  std::atomic<int> failed = 0;
  for (int pod = 0; pod < 4; ++pod)
    pods.emplace_back([&] {
      std::string error;
      for (int start = 0; start < 25; ++start)
        if (!CopyInto(from, to, &error) || Read(to + "/plugin.so") != Read(from)) ++failed;
    });
  for (std::thread& pod : pods) pod.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(NamesIn(to), std::vector<std::string>{"plugin.so"});
}

TEST_F(CopyTest, TheRestOfAKilledSetupIsRemovedLater) {
  const std::string from = folder_ + "/plugin.so", to = folder_ + "/volume";
  ASSERT_EQ(mkdir(to.c_str(), 0755), 0);
  std::ofstream(from) << "new";
  for (const char* name : {"plugin.so.new", "plugin.so.new-a1b2c3", "plugin.so.new-d4e5f6", "other.so.new"})
    std::ofstream(to + "/" + name) << "half";
  const timespec long_ago[2] = {{1'700'000'000, 0}, {1'700'000'000, 0}};
  for (const char* name : {"plugin.so.new", "plugin.so.new-a1b2c3", "other.so.new"})
    ASSERT_EQ(utimensat(AT_FDCWD, (to + "/" + name).c_str(), long_ago, 0), 0);
  ASSERT_TRUE(CopyInto(from, to, &error_)) << error_;
  EXPECT_EQ(NamesIn(to), (std::vector<std::string>{"other.so.new", "plugin.so", "plugin.so.new-d4e5f6"})) << "the last may be under way";
}

TEST_F(CopyTest, AFileThatCannotBeCopiedIsNamed) {
  EXPECT_FALSE(CopyInto(folder_ + "/none.so", folder_, &error_));
  EXPECT_THAT(error_, HasSubstr(folder_ + "/none.so"));
  EXPECT_FALSE(CopyInto(folder_ + "/none.so", folder_ + "/nowhere", &error_));
  EXPECT_THAT(error_, HasSubstr("mount the volume"));
}

}  // namespace
}  // namespace r2cc::setup
