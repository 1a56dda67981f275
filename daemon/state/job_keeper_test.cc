#include "daemon/state/job_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/fake_executor.h"
#include "daemon/io/fake_files.h"

namespace r2cc::daemon {
namespace {

using testing::HasSubstr;

class JobKeeperTest : public testing::Test {
 protected:
  std::unique_ptr<JobKeeper> Make() {
    return std::make_unique<JobKeeper>(&files_, &disk_, &core_, "jobs", [this](const absl::Status& status) { turns_.push_back(status); });
  }
  void Settle() {
    for (int i = 0; i < 4; ++i) {
      disk_.RunPosted();
      core_.RunPosted();
    }
  }
  static v1::KeptJobs Kept() {
    v1::KeptJobs kept;
    kept.set_saved_ns(77);
    kept.add_ended()->set_job("train");
    return kept;
  }

  FakeFiles files_;
  FakeExecutor disk_, core_;
  std::vector<absl::Status> turns_;
  std::string trouble_;
};

TEST_F(JobKeeperTest, RestoresWhatAFormerRunSaved) {
  EXPECT_EQ(Make()->Load(&trouble_).ended_size(), 0);
  const auto keeper = Make();
  keeper->Save(Kept());
  Settle();
  const v1::KeptJobs again = Make()->Load(&trouble_);
  EXPECT_EQ(trouble_, "");
  ASSERT_EQ(again.ended_size(), 1);
  EXPECT_EQ(again.ended(0).job(), "train");
  EXPECT_EQ(again.saved_ns(), 77);
}

TEST_F(JobKeeperTest, UnknownContentIsSetAside) {
  v1::KeptJobs newer = Kept();
  newer.set_version(JobKeeper::kVersion + 1);
  for (const std::string& text : {std::string("\xff\xff garbage"), newer.SerializeAsString()}) {
    ASSERT_TRUE(files_.WriteAtomically("jobs", text).ok());
    trouble_.clear();
    EXPECT_EQ(Make()->Load(&trouble_).ended_size(), 0);
    EXPECT_THAT(trouble_, HasSubstr("it is kept as jobs.damaged"));
    EXPECT_EQ(*files_.Read("jobs.damaged"), text);
  }
}

TEST_F(JobKeeperTest, AFileThatCannotBeReadIsNotWrittenOver) {
  ASSERT_TRUE(files_.WriteAtomically("jobs", "what another user wrote").ok());
  files_.Damage("jobs");
  const auto keeper = Make();
  keeper->Load(&trouble_);
  EXPECT_THAT(trouble_, HasSubstr("will not be kept"));
  keeper->Save(Kept());
  Settle();
  files_.Damage("");
  EXPECT_EQ(*files_.Read("jobs"), "what another user wrote");
}

TEST_F(JobKeeperTest, APowerLossLeavesTheOldOrTheNew) {
  for (const FakeFiles::Torn torn : {FakeFiles::Torn::kNothing, FakeFiles::Torn::kHalf, FakeFiles::Torn::kAll}) {
    auto keeper = Make();
    v1::KeptJobs kept = Kept();
    keeper->Save(kept);
    Settle();
    files_.CutPower(0, torn);
    kept.set_saved_ns(78);
    keeper->Save(kept);
    Settle();
    EXPECT_TRUE(files_.power_is_off());
    files_.TurnPowerOn();
    EXPECT_EQ(Make()->Load(&trouble_).saved_ns(), torn == FakeFiles::Torn::kAll ? 78 : 77);
    EXPECT_EQ(trouble_, "");
  }
}

// The file that was set aside at the first start is there at the second one.
TEST_F(JobKeeperTest, APowerLossWhileItIsSetAsideLosesNothing) {
  for (const FakeFiles::Torn torn : {FakeFiles::Torn::kNothing, FakeFiles::Torn::kHalf, FakeFiles::Torn::kAll}) {
    files_.Lose();
    ASSERT_TRUE(files_.WriteAtomically("jobs", "\xff garbage").ok());
    files_.CutPower(0, torn);
    Make()->Load(&trouble_);
    files_.TurnPowerOn();
    Make()->Load(&trouble_);
    EXPECT_EQ(files_.Read("jobs.damaged").value_or(""), "\xff garbage");
  }
}

TEST_F(JobKeeperTest, AFullDiskIsReportedOnce) {
  const auto keeper = Make();
  files_.SetFull(true);
  keeper->Save(Kept());
  keeper->Save(Kept());
  Settle();
  ASSERT_EQ(turns_.size(), 1u);
  EXPECT_FALSE(turns_[0].ok());
  files_.SetFull(false);
  keeper->Save(Kept());
  Settle();
  ASSERT_EQ(turns_.size(), 2u);
  EXPECT_TRUE(turns_[1].ok());
}

TEST_F(JobKeeperTest, WhileTheDiskDoesNotAnswerOnlyTheNewestWaits) {
  const auto keeper = Make();
  for (int i = 0; i < 100; ++i) {
    v1::KeptJobs kept = Kept();
    kept.set_saved_ns(i);
    keeper->Save(std::move(kept));
  }
  Settle();
  EXPECT_EQ(files_.writes(), 3) << "two that were posted, and the newest";
  EXPECT_EQ(Make()->Load(&trouble_).saved_ns(), 99);
}

}  // namespace
}  // namespace r2cc::daemon
