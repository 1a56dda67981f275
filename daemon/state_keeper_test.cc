#include "daemon/state_keeper.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/fake_executor.h"
#include "daemon/io/fake_files.h"

namespace r2cc::daemon {
namespace {

SavedState Drained() { return {"boot-1", {{"rail0", {true, false, 1000}}, {"rail1", {false, true, 0}}}}; }

class StateKeeperTest : public testing::Test {
 protected:
  StateKeeperTest()
      : keeper_(&files_, &disk_, &core_, "/run/state", [this](const absl::Status& status) { turns_.push_back(status.ok()); }) {}

  // The disk writes and the core hears of it.
  void Settle() {
    disk_.RunPosted();
    core_.RunPosted();
  }

  FakeFiles files_;
  FakeExecutor disk_;
  FakeExecutor core_;
  std::vector<bool> turns_;
  StateKeeper keeper_;
};

TEST_F(StateKeeperTest, WhatIsSavedIsLoaded) {
  std::string trouble;
  EXPECT_EQ(keeper_.Load(&trouble), SavedState());
  bool done = false;
  keeper_.Save(Drained(), [&] { done = true; });
  EXPECT_FALSE(done) << "the core does not wait for the disk";
  Settle();
  EXPECT_TRUE(done);
  EXPECT_EQ(keeper_.Load(&trouble), Drained());
  EXPECT_EQ(trouble, "");
  EXPECT_TRUE(turns_.empty());
}

TEST_F(StateKeeperTest, AFullDiskIsToldOnceAndItsEndToo) {
  files_.SetFull(true);
  int done = 0;
  for (int i = 0; i < 3; ++i) keeper_.Save(Drained(), [&] { ++done; });
  Settle();
  EXPECT_EQ(done, 3);
  EXPECT_EQ(turns_, std::vector<bool>{false});
  files_.SetFull(false);
  keeper_.Save(Drained(), nullptr);
  Settle();
  EXPECT_EQ(turns_, (std::vector<bool>{false, true}));
}

TEST_F(StateKeeperTest, AGarbledFileIsSetAside) {
  for (const char* garbled : {"words { nic: 'a' weight_permille: 1001 }", "words { nic: 'a/b' }", "\x01\x02", "boot_id: x"}) {
    ASSERT_TRUE(files_.WriteAtomically("/run/state", garbled).ok());
    std::string trouble;
    EXPECT_EQ(keeper_.Load(&trouble), SavedState());
    EXPECT_NE(trouble.find("/run/state.garbled"), std::string::npos) << trouble;
    EXPECT_EQ(*files_.Read("/run/state.garbled"), garbled);
  }
}

TEST(SavedStateTest, WordsAboutAbsentNicsStay) {
  const health::OperatorSettings saved = {{"absent", {true, false, 1000}}, {"rail0", {true, false, 1000}}, {"rail1", {true, false, 1000}}};
  const health::OperatorSettings merged = MergeSettings(saved, {"rail0", "rail1"}, {{"rail1", {false, false, 5}}});
  EXPECT_EQ(merged, (health::OperatorSettings{{"absent", {true, false, 1000}}, {"rail1", {false, false, 5}}}));
}

}  // namespace
}  // namespace r2cc::daemon
