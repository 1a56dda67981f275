#include "daemon/io/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

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

TEST(OsFilesTest, AFullDiskIsToldAndLeavesNothing) {
  OsFiles files;
  // Every write to /dev/full fails with ENOSPC; the temporary file is a link to it.
  const std::string path = Folder() + "/state";
  ASSERT_EQ(symlink("/dev/full", (path + ".new").c_str()), 0);
  const absl::Status status = files.WriteAtomically(path, "new");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(files.Read(path).status().code(), absl::StatusCode::kNotFound);
}

TEST(OsFilesTest, NamesTheFolderThatIsNotThere) {
  OsFiles files;
  const absl::Status status = files.WriteAtomically("/nonexistent-r2cc/state", "x");
  EXPECT_NE(status.message().find("/nonexistent-r2cc/state"), std::string::npos) << status;
}

}  // namespace
}  // namespace r2cc::daemon
