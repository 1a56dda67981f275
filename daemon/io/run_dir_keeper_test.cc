#include "daemon/io/run_dir_keeper.h"

#include <gtest/gtest.h>

#include "base/fake_executor.h"

namespace r2cc::daemon {
namespace {

class RunDirKeeperTest : public testing::Test {
 protected:
  RunDirKeeper::Part PartOf(const std::string& name, bool* there) {
    return {name, [there] { return *there; },
            [this, name, there] {
              made_ += name + " ";
              if (name == refused_) return absl::AlreadyExistsError("another r2ccd holds it");
              *there = true;
              return absl::OkStatus();
            }};
  }

  FakeExecutor core_;
  bool lock_ = true, attach_ = true, control_ = true;
  std::string made_;
  std::string refused_;
  RunDirKeeper keeper_{&core_, {PartOf("lock", &lock_), PartOf("attach", &attach_), PartOf("control", &control_)}};
};

TEST_F(RunDirKeeperTest, DeletedFilesAreMadeAgainInOrder) {
  core_.Advance(10 * kRunDirInterval);
  EXPECT_EQ(made_, "");
  control_ = lock_ = attach_ = false;
  core_.Advance(kRunDirInterval);
  EXPECT_EQ(made_, "lock attach control ");
  attach_ = false;
  core_.Advance(3 * kRunDirInterval);
  EXPECT_EQ(made_, "lock attach control attach ");
}

TEST_F(RunDirKeeperTest, ADirectoryThatAnotherDaemonHasTakenIsLeftToIt) {
  refused_ = "lock";
  lock_ = attach_ = control_ = false;
  core_.Advance(3 * kRunDirInterval);
  EXPECT_EQ(made_, "lock lock lock ") << "asked again, and nothing else is touched";
  refused_ = "";
  core_.Advance(kRunDirInterval);
  EXPECT_TRUE(lock_ && attach_ && control_);
}

}  // namespace
}  // namespace r2cc::daemon
