#include "daemon/io/files.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <optional>

#include "daemon/io/lock_file.h"

namespace r2cc::daemon {
namespace {

std::string Folder() {
  std::string name = std::string(testing::TempDir()) + "/files.XXXXXX";
  return mkdtemp(name.data());
}

TEST(OsFilesTest, WritesAndReadsBack) {
  OsFiles files;
  const std::string path = Folder() + "/state";
  EXPECT_EQ(files.Read(path).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(files.WriteAtomically(path, "one").ok());
  ASSERT_TRUE(files.WriteAtomically(path, "two").ok());
  EXPECT_EQ(*files.Read(path), "two");
  EXPECT_NE(access((path + ".new").c_str(), F_OK), 0) << "the temporary file stayed behind";
}

TEST(OsFilesTest, AFailedWriteLeavesTheOldContents) {
  OsFiles files;
  const std::string path = Folder() + "/state";
  ASSERT_TRUE(files.WriteAtomically(path, "old").ok());
  ASSERT_EQ(mkdir((path + ".new").c_str(), 0700), 0);  // the temporary file cannot be made
  const absl::Status status = files.WriteAtomically(path, "new");
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find(path), std::string::npos) << status;
  EXPECT_EQ(*files.Read(path), "old");
}

TEST(OsFilesTest, ALinkAtTheTemporaryFilesNameLeadsNowhere) {
  OsFiles files;
  const std::string folder = Folder();
  ASSERT_TRUE(files.WriteAtomically(folder + "/other", "old").ok());
  ASSERT_EQ(symlink((folder + "/other").c_str(), (folder + "/state.new").c_str()), 0);
  EXPECT_TRUE(files.WriteAtomically(folder + "/state", "new").ok());
  EXPECT_EQ(*files.Read(folder + "/other"), "old");
  EXPECT_EQ(*files.Read(folder + "/state"), "new");
}

TEST(OsFilesTest, BelowAFileThereIsNone) {
  OsFiles files;
  const std::string path = Folder() + "/file";
  ASSERT_TRUE(files.WriteAtomically(path, "x").ok());
  EXPECT_EQ(files.Read(path + "/state").status(), absl::NotFoundError("cannot read " + path + "/state: Not a directory"));
}

TEST(OsFilesTest, FilesOfRootInTheServicesFolderBecomeTheServices) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: gives a folder away";
  constexpr uid_t kUser = 65534;
  OsFiles files;
  const std::string folder = Folder();
  ASSERT_EQ(chown(folder.c_str(), kUser, kUser), 0);
  ASSERT_TRUE(files.WriteAtomically(folder + "/state", "x").ok());
  ASSERT_TRUE(files.Append(folder + "/audit.log", "x").ok());
  ASSERT_TRUE(LockFile::Take(folder + "/r2ccd.lock", folder, "--state_dir").ok());
  for (const char* name : {"/state", "/audit.log", "/r2ccd.lock"}) {
    struct stat file {};
    ASSERT_EQ(stat((folder + name).c_str(), &file), 0) << name;
    EXPECT_EQ(file.st_uid, kUser) << name;
    EXPECT_EQ(file.st_gid, kUser) << name;
  }
}

TEST(OsFilesTest, AppendsToWhatIsThere) {
  OsFiles files;
  const std::string path = Folder() + "/log";
  ASSERT_TRUE(files.Append(path, "one\n").ok());
  ASSERT_TRUE(files.Append(path, "two\n").ok());
  EXPECT_EQ(*files.Read(path), "one\ntwo\n");
  EXPECT_EQ(files.Append("/dev/full", "x").message(), "cannot write /dev/full: No space left on device");
}

TEST(OsFilesTest, RenamesAndNamesWhatIsNotThere) {
  OsFiles files;
  const std::string folder = Folder();
  ASSERT_TRUE(files.WriteAtomically(folder + "/a", "new").ok());
  ASSERT_TRUE(files.WriteAtomically(folder + "/b", "old").ok());
  EXPECT_TRUE(files.Rename(folder + "/a", folder + "/b").ok());
  EXPECT_EQ(*files.Read(folder + "/b"), "new");
  EXPECT_EQ(files.Rename(folder + "/a", folder + "/b").message(), "cannot rename " + folder + "/a: No such file or directory");
}

TEST(OsFilesTest, NamesTheFolderThatIsNotThere) {
  OsFiles files;
  const absl::Status status = files.WriteAtomically("/nonexistent-r2cc/state", "x");
  EXPECT_NE(status.message().find("/nonexistent-r2cc/state"), std::string::npos) << status;
}

// The result of `body`, called with a folder on a file system of 64 KiB; nullopt: that needs root.
std::optional<bool> OnASmallDisk(const std::function<bool(const std::string& folder)>& body) {
  const std::string folder = Folder();
  // In a mount namespace of a child's own: nobody else sees it, and it goes with the child.
  const pid_t child = fork();
  if (child == 0) {
    constexpr int kNotAllowed = 77;
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("small", folder.c_str(), "tmpfs", 0, "size=64k") != 0)
      _exit(kNotAllowed);
    _exit(body(folder) ? 0 : 1);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return false;
  if (WEXITSTATUS(status) == 77) return std::nullopt;
  return WEXITSTATUS(status) == 0;
}

// A file system without room, and then with: what was there stays until the new is whole.
TEST(OsFilesTest, AFullDiskKeepsWhatWasThere) {
  const auto kept = OnASmallDisk([](const std::string& folder) {
    OsFiles files;
    const std::string old(8 << 10, 'o'), large(128 << 10, 'l');
    const bool first = files.WriteAtomically(folder + "/state", old).ok();
    const absl::Status full = files.WriteAtomically(folder + "/state", large);
    const bool kept = *files.Read(folder + "/state") == old;
    const bool tidy = access((folder + "/state.new").c_str(), F_OK) != 0;
    const bool again = files.WriteAtomically(folder + "/state", "small").ok();
    const bool named = std::string(full.message()).find("No space left on device") != std::string::npos;
    return first && !full.ok() && kept && tidy && again && named;
  });
  if (!kept.has_value()) GTEST_SKIP() << "needs root: to mount a small file system";
  EXPECT_TRUE(*kept);
}

TEST(OsFilesTest, AFullDiskGetsNoPartOfWhatIsAppended) {
  const auto whole = OnASmallDisk([](const std::string& folder) {
    OsFiles files;
    const std::string line(5000, 'l');
    std::string before;
    // A page that has room takes the beginning of a line.
    while (files.Append(folder + "/log", line).ok()) before += line;
    const absl::Status full = files.Append(folder + "/log", line);
    return !before.empty() && absl::IsResourceExhausted(full) && *files.Read(folder + "/log") == before;
  });
  if (!whole.has_value()) GTEST_SKIP() << "needs root: to mount a small file system";
  EXPECT_TRUE(*whole);
}

}  // namespace
}  // namespace r2cc::daemon
