#include "daemon/state/state_keeper.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/fake_executor.h"
#include "daemon/io/fake_files.h"

namespace r2cc::daemon {
namespace {

SavedState Drained() { return {"boot-1", {{"rail0", {true, false, 1000}}, {"rail1", {false, true, 0, 17 * kNanosPerSecond}}}, 42}; }

class StateKeeperTest : public testing::Test {
 protected:
  StateKeeperTest()
      : keeper_(&files_, &disk_, &core_, "/lib/state", [this](const absl::Status& status) { turns_.push_back(status.ok()); }) {}

  // The disk writes and the core gets the result.
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

TEST_F(StateKeeperTest, SavedStateIsLoaded) {
  std::string trouble;
  EXPECT_EQ(*keeper_.Load(&trouble), SavedState());
  bool done = false;
  keeper_.Save(Drained(), [&](const absl::Status& status) { done = status.ok(); });
  EXPECT_FALSE(done) << "the core does not wait for the disk";
  Settle();
  EXPECT_TRUE(done);
  EXPECT_EQ(*keeper_.Load(&trouble), Drained());
  EXPECT_EQ(trouble, "");
  EXPECT_TRUE(turns_.empty());
}

TEST_F(StateKeeperTest, AFullDiskAndItsEndAreReportedOnce) {
  files_.SetFull(true);
  int done = 0;
  for (int i = 0; i < 3; ++i) keeper_.Save(Drained(), [&](const absl::Status& status) { done += !status.ok(); });
  Settle();
  EXPECT_EQ(done, 3);
  EXPECT_EQ(turns_, std::vector<bool>{false});
  files_.SetFull(false);
  keeper_.Save(Drained(), nullptr);
  Settle();
  EXPECT_EQ(turns_, (std::vector<bool>{false, true}));
}

TEST_F(StateKeeperTest, UnwrittenStateIsWrittenWhenThereIsRoom) {
  files_.SetFull(true);
  keeper_.Save(Drained(), nullptr);
  Settle();
  EXPECT_EQ(keeper_.trouble().code(), absl::StatusCode::kResourceExhausted);
  core_.Advance(StateKeeper::kRetryInterval);
  Settle();
  EXPECT_EQ(files_.writes(), 2) << "it is tried again";
  files_.SetFull(false);
  core_.Advance(StateKeeper::kRetryInterval);
  Settle();
  std::string trouble;
  EXPECT_EQ(*keeper_.Load(&trouble), Drained());
  EXPECT_TRUE(keeper_.trouble().ok());
  EXPECT_EQ(turns_, (std::vector<bool>{false, true}));
  core_.Advance(10 * StateKeeper::kRetryInterval);
  Settle();
  EXPECT_EQ(files_.writes(), 3) << "and then no more";
}

// The command's answer depends on `done`: what it calls kept is there after the power is back.
TEST_F(StateKeeperTest, APowerLossLeavesTheOldSettingsOrTheNew) {
  for (const FakeFiles::Torn torn : {FakeFiles::Torn::kNothing, FakeFiles::Torn::kHalf, FakeFiles::Torn::kAll}) {
    SavedState before = Drained(), after = Drained();
    after.settings.erase("rail0");
    keeper_.Save(before, nullptr);
    Settle();
    files_.CutPower(0, torn);
    absl::Status kept;
    keeper_.Save(after, [&](const absl::Status& status) { kept = status; });
    Settle();
    EXPECT_FALSE(kept.ok());
    files_.TurnPowerOn();
    std::string trouble;
    StateKeeper next(&files_, &disk_, &core_, "/lib/state", [](const absl::Status&) {});
    EXPECT_EQ(*next.Load(&trouble), torn == FakeFiles::Torn::kAll ? after : before);
    EXPECT_EQ(trouble, "");
  }
}

TEST_F(StateKeeperTest, TheFirstDamagedFileIsKept) {
  std::string trouble;
  for (const std::string text : {"first", "second", "third"}) {
    ASSERT_TRUE(files_.WriteAtomically("/lib/state", text).ok());
    EXPECT_EQ(*keeper_.Load(&trouble), SavedState());
  }
  EXPECT_EQ(*files_.Read("/lib/state.damaged"), "first");
  EXPECT_EQ(*files_.Read("/lib/state.damaged.3"), "third");
}

TEST_F(StateKeeperTest, AFileThatIsNotUnderstoodIsSetAside) {
  const std::string way_out =
      "; it is kept as /lib/state.damaged, and r2ccd starts without operators' settings: set drains, weights and "
      "drills again";
  std::string many = "version: 1";
  for (size_t i = 0; i <= kSettingsMax; ++i) many += " words { nic: 'r" + std::to_string(i) + "' }";
  for (const auto& [damaged, why] : std::vector<std::pair<std::string, std::string>>{
           {"version: 1 words { nic: 'a' weight_permille: 1001 }", "garbled setting of a NIC"},
           {"version: 1 words { nic: 'a/b' }", "garbled setting of a NIC"},
           {"version: 1 words { nic: 'a' drill_left_ns: 0 }", "garbled setting of a NIC"},
           {"version: 1 words { nic: 'a' drill_left_ns: 86400000000001 }", "garbled setting of a NIC"},
           {"version: 1 boot_ns: -1", "garbled boot_ns"},
           {"\x01\x02", "garbled"},
           {"version: 1 boot_id: x", "garbled"},
           {"version: 1 surprise: 4", "garbled"},
           {"version: 2 surprise: 4", "written in format 2 by another release; this one reads 1"},
           {"", "written in format 0 by another release; this one reads 1"},
           {many, "settings of more than 256 NICs"}}) {
    ASSERT_TRUE(files_.WriteAtomically("/lib/state", damaged).ok());
    std::string trouble;
    EXPECT_EQ(*keeper_.Load(&trouble), SavedState());
    EXPECT_EQ(trouble, "/lib/state: " + why + way_out);
    EXPECT_EQ(*files_.Read("/lib/state.damaged"), damaged);
    ASSERT_TRUE(files_.Rename("/lib/state.damaged", "/elsewhere").ok());
    trouble.clear();
    EXPECT_EQ(*keeper_.Load(&trouble), SavedState());
    EXPECT_EQ(trouble, "") << "it is out of the way";
  }
}

TEST_F(StateKeeperTest, AFileThatCannotBeReadIsNotDamagedAndNothingStartsWithoutIt) {
  keeper_.Save(Drained(), nullptr);
  Settle();
  std::string trouble;
  files_.Damage("/lib/state");
  EXPECT_EQ(keeper_.Load(&trouble).status().message(),
            "cannot read /lib/state: Input/output error: r2ccd does not start without the operator's drains and weights in it; mend the "
            "disk, or move the file away to start without them");
  files_.Damage("/lib/state", absl::PermissionDeniedError("cannot read /lib/state: Permission denied"));
  EXPECT_EQ(keeper_.Load(&trouble).status().message(),
            "cannot read /lib/state: Permission denied: r2ccd does not start without the operator's drains and weights in it; give it to "
            "r2ccd's user: chown --reference=/lib /lib/state");
  EXPECT_EQ(trouble, "");
  EXPECT_TRUE(absl::IsNotFound(files_.Read("/lib/state.damaged").status()));
  files_.Damage("");
  EXPECT_EQ(*keeper_.Load(&trouble), Drained()) << "no record is lost";
}

TEST(SavedStateTest, AbsentNicsHaveTheRoomThatIsLeft) {
  health::OperatorSettings saved;
  for (size_t i = 0; i < kSettingsMax; ++i) saved["absent" + std::to_string(i)] = {true, false, 1000};
  const health::OperatorSettings merged = MergeSettings(saved, {"rail0"}, {{"rail0", {true, false, 1000}}});
  EXPECT_EQ(merged.size(), kSettingsMax);
  EXPECT_TRUE(merged.contains("rail0"));
}

TEST(SavedStateTest, ADrillNeverOutlivesItsLength) {
  constexpr Nanos kSecond = kNanosPerSecond;
  const health::OperatorSettings settings = {{"rail0", {false, true, 1000, 1000 + 100 * kSecond}}, {"rail1", {true, false, 1000}}};
  const SavedState saved = ToSave(settings, {"boot-1", 500 * kSecond, 1000});
  EXPECT_EQ(saved.settings.at("rail0").drill_until, 100 * kSecond);
  // What was left `later`, in the boot `id` by whose clock `boot_time` has passed.
  const auto left = [&saved](const std::string& id, Nanos boot_time, std::vector<std::string>* ended) {
    const health::OperatorSettings now = Resume(saved, {id, boot_time, 7}, ended);
    EXPECT_TRUE(now.at("rail1").drained);
    return now.contains("rail0") ? now.at("rail0").drill_until - 7 : 0;
  };
  std::vector<std::string> ended;
  EXPECT_EQ(left("boot-1", 500 * kSecond, &ended), 100 * kSecond);
  EXPECT_EQ(left("boot-1", 530 * kSecond, &ended), 70 * kSecond) << "the time that it was down counts";
  EXPECT_EQ(left("boot-1", 400 * kSecond, &ended), 100 * kSecond) << "no clock makes it longer";
  EXPECT_EQ(left("boot-2", 3 * kSecond, &ended), 100 * kSecond - kDrillSaveInterval) << "after a reboot: what was left when it was written";
  EXPECT_TRUE(ended.empty());
  EXPECT_EQ(left("boot-1", 600 * kSecond, &ended), 0);
  EXPECT_EQ(ended, std::vector<std::string>{"rail0"});
}

TEST(SavedStateTest, ADrillThatIsOverIsNotWritten) {
  const SavedState saved = ToSave({{"rail0", {false, true, 1000, 50}}, {"rail1", {true, true, 1000, 50}}}, {"boot-1", 9, 50});
  EXPECT_EQ(saved.settings, (health::OperatorSettings{{"rail1", {true, false, 1000}}}));
}

TEST(SavedStateTest, SettingsOfAbsentNicsStay) {
  const health::OperatorSettings saved = {{"absent", {true, false, 1000}}, {"rail0", {true, false, 1000}}, {"rail1", {true, false, 1000}}};
  const health::OperatorSettings merged = MergeSettings(saved, {"rail0", "rail1"}, {{"rail1", {false, false, 5}}});
  EXPECT_EQ(merged, (health::OperatorSettings{{"absent", {true, false, 1000}}, {"rail1", {false, false, 5}}}));
}

TEST(SavedStateTest, DrainsOfSingleJobsAreKept) {
  SavedState state{"boot", {{"rail0", {.drained_jobs = {"eval", "train"}}}}, 1};
  const auto back = DecodeState(EncodeState(state), "f");
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, state);
  state.settings["rail0"].drained_jobs = {"a b"};
  EXPECT_EQ(DecodeState(EncodeState(state), "f").status().message(), "f: garbled setting of a NIC");
}

}  // namespace
}  // namespace r2cc::daemon
