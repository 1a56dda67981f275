#include "daemon/state/event_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/fake_executor.h"
#include "daemon/io/fake_files.h"

namespace r2cc::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kDay = 24 * 3600 * int64_t{1'000'000'000};
constexpr int64_t kNow = 20'000 * kDay;

class EventHistoryTest : public testing::Test {
 protected:
  // A run of the daemon.
  void Live() {
    history_ = std::make_unique<EventHistory>(&files_, &disk_, &core_, "events.log",
                                              [this](const absl::Status& status) { turns_.push_back(status); });
    trouble_.clear();
    loaded_.clear();
    for (const v1::Event& event : history_->Load(now_, &trouble_)) loaded_.push_back(event.sequence());
  }
  void Add(uint64_t sequence, uint64_t instance = 5) {
    v1::Event event;
    event.set_sequence(sequence);
    event.set_instance(instance);
    event.set_time_ns(now_);
    event.set_kind("state");
    history_->Add(event);
  }
  void Settle() {
    for (int i = 0; i < 3; ++i) {
      core_.Advance(EventHistory::kGather);
      disk_.RunPosted();
      core_.RunPosted();
    }
  }

  int64_t now_ = kNow;
  FakeFiles files_;
  FakeExecutor disk_, core_;
  std::vector<absl::Status> turns_;
  std::unique_ptr<EventHistory> history_;
  std::string trouble_;
  std::vector<uint64_t> loaded_;
};

TEST_F(EventHistoryTest, TheNextRunReadsWhatTheOneBeforeWrote) {
  Live();
  EXPECT_THAT(loaded_, IsEmpty());
  Add(1);
  Add(2);
  Settle();
  Add(3);
  history_->Flush();  // at the end, without waiting
  disk_.RunPosted();
  Live();
  EXPECT_EQ(trouble_, "");
  EXPECT_THAT(loaded_, ElementsAre(1, 2, 3));
  Add(4);
  Settle();
  Live();
  EXPECT_THAT(loaded_, ElementsAre(1, 2, 3, 4));
}

// Readers know the numbers of events that a crash has taken from the file.
TEST_F(EventHistoryTest, TheHistoryIsWholeOnlyAfterAnOrderlyEnd) {
  Live();
  EXPECT_TRUE(history_->is_whole()) << "there is none";
  Add(1);
  Settle();
  Live();
  EXPECT_FALSE(history_->is_whole()) << "it was killed";
  Add(2);
  history_->End();
  disk_.RunPosted();
  Live();
  EXPECT_TRUE(history_->is_whole());
  EXPECT_EQ(trouble_, "");
  EXPECT_THAT(loaded_, ElementsAre(1, 2));
  Add(3);
  Settle();
  Live();
  EXPECT_FALSE(history_->is_whole()) << "the mark is of the run before";
  files_.SetFull(true);
  Add(4);
  Settle();
  files_.SetFull(false);
  Add(5);
  history_->End();
  disk_.RunPosted();
  Live();
  EXPECT_FALSE(history_->is_whole()) << "one is lacking";
  EXPECT_THAT(loaded_, ElementsAre(1, 2, 3, 5));
}

TEST_F(EventHistoryTest, AnotherInstanceBeginsAgain) {
  Live();
  Add(1, 5);
  Add(2, 5);
  Add(1, 6);
  Settle();
  Live();
  EXPECT_THAT(loaded_, ElementsAre(1));
}

TEST_F(EventHistoryTest, GarbledLinesAreLeftOut) {
  Live();
  Add(1);
  Settle();
  ASSERT_TRUE(files_.Append("events.log", "{\"kind\":\"state\"}\nwhat is this\n{\"sequence\":").ok());
  Live();
  EXPECT_THAT(trouble_, HasSubstr("3 garbled lines"));
  EXPECT_THAT(loaded_, ElementsAre(1));
  Add(2);
  Settle();
  Live();
  EXPECT_THAT(loaded_, ElementsAre(1, 2)) << "not behind a line that was cut short";
}

TEST_F(EventHistoryTest, OldEventsGo) {
  Live();
  Add(1);
  Settle();
  now_ += EventHistory::kAgeMaxNs / 2;
  Add(2);
  Settle();
  now_ += EventHistory::kAgeMaxNs / 2 + kDay;
  Live();
  EXPECT_THAT(loaded_, ElementsAre(2));
  Add(3);
  Settle();
  Live();
  EXPECT_THAT(loaded_, ElementsAre(2, 3));
}

TEST_F(EventHistoryTest, TwoGenerationsAreKept) {
  Live();
  const uint64_t many = 2 * EventHistory::kEventsMax + 100;
  for (uint64_t i = 1; i <= many; ++i) {
    Add(i);
    if (i % 4096 == 0) Settle();
  }
  Settle();
  Live();
  EXPECT_EQ(trouble_, "");
  EXPECT_EQ(loaded_.back(), many);
  EXPECT_LE(loaded_.size(), 2 * EventHistory::kEventsMax);
  EXPECT_GE(loaded_.size(), EventHistory::kEventsMax);
}

TEST_F(EventHistoryTest, AFullDiskTurnsNoGeneration) {
  ASSERT_TRUE(files_.WriteAtomically("events.log.1", "the older one").ok());
  Live();
  Add(1);
  Settle();
  ASSERT_TRUE(files_.Append("events.log", std::string(EventHistory::kFileBytesMax - 4096, ' ') + "\n").ok());
  Live();
  files_.SetFull(true);
  for (uint64_t sequence = 2; sequence <= 100; ++sequence) {
    Add(sequence);
    Settle();
  }
  files_.SetFull(false);
  Add(101);
  Settle();
  EXPECT_TRUE(*files_.Read("events.log.1") == "the older one");
  Live();
  EXPECT_THAT(loaded_, ElementsAre(1, 101));
}

TEST_F(EventHistoryTest, EventsThatNoFileTookFillNoGeneration) {
  Live();
  Add(1);
  Settle();
  files_.SetFull(true);
  for (uint64_t sequence = 2; sequence <= EventHistory::kEventsMax; ++sequence) {
    Add(sequence);
    if (sequence % 4096 == 0) Settle();
  }
  Settle();
  files_.SetFull(false);
  Add(EventHistory::kEventsMax + 1);
  Settle();
  EXPECT_TRUE(absl::IsNotFound(files_.Read("events.log.1").status()));
}

TEST_F(EventHistoryTest, AFullDiskIsReportedOnceAndAnUnreadableFileStays) {
  Live();
  files_.SetFull(true);
  Add(1);
  Settle();
  Add(2);
  Settle();
  EXPECT_EQ(turns_.size(), 1u);
  files_.SetFull(false);
  for (Nanos waited = 0; waited < EventHistory::kRetryMax; waited += kNanosPerSecond / 4) {
    core_.Advance(kNanosPerSecond / 4);
    Settle();
  }
  EXPECT_EQ(turns_.size(), 2u) << "without another event";
  const std::string before = *files_.Read("events.log");
  files_.Damage("events.log");
  Live();
  EXPECT_THAT(trouble_, HasSubstr("will not be kept"));
  Add(4);
  Settle();
  files_.Damage("");
  EXPECT_EQ(*files_.Read("events.log"), before);
}

// Whenever it goes, also while a generation is turned: what was on the disk is read in order, and the next run writes on.
TEST_F(EventHistoryTest, APowerLossCostsNothingThatWasWritten) {
  for (const FakeFiles::Torn torn : {FakeFiles::Torn::kNothing, FakeFiles::Torn::kHalf, FakeFiles::Torn::kAll})
    for (int changes = 0; changes < 9; ++changes) {
      SCOPED_TRACE(absl::StrCat("after ", changes, " changes, ", static_cast<int>(torn)));
      files_.Lose();
      Live();
      Add(1);
      Settle();
      // The generation is full a few events later.
      ASSERT_TRUE(files_.Append("events.log", std::string(EventHistory::kFileBytesMax - 600, 'x') + "\n").ok());
      Live();
      files_.CutPower(changes, torn);
      std::vector<uint64_t> written = {1};
      uint64_t sequence = 2;
      for (; !files_.power_is_off(); sequence += 2) {
        Add(sequence);
        Add(sequence + 1);
        Settle();
        if (!files_.power_is_off()) written.insert(written.end(), {sequence, sequence + 1});
      }
      files_.TurnPowerOn();
      Live();
      ASSERT_GE(loaded_.size(), written.size());
      EXPECT_THAT(std::vector(loaded_.begin(), loaded_.begin() + static_cast<ptrdiff_t>(written.size())), written);
      for (size_t i = written.size(); i < loaded_.size(); ++i) EXPECT_EQ(loaded_[i], written.back() + 1 + (i - written.size()));
      std::vector<uint64_t> all = loaded_;
      Add(sequence + 1);
      Settle();
      all.push_back(sequence + 1);
      Live();
      EXPECT_EQ(loaded_, all) << trouble_;
    }
}

// The disk does not answer for hours, and a user's jobs make events all the time.
TEST_F(EventHistoryTest, PendingWritesAreBounded) {
  Live();
  constexpr uint64_t kMany = 50'000;
  for (uint64_t sequence = 1; sequence <= kMany; ++sequence) {
    Add(sequence);
    if (sequence % 10 == 0) core_.Advance(EventHistory::kGather);
  }
  // One write, and what was gathered behind it.
  disk_.RunPosted();
  core_.RunPosted();
  Settle();
  const std::string text = files_.Read("events.log").value_or("");
  EXPECT_GT(text.size(), EventHistory::kGatheredBytesMax / 2);
  EXPECT_LT(text.size(), EventHistory::kGatheredBytesMax + 4096);
  Add(kMany + 1);
  Settle();
  EXPECT_THAT(files_.Read("events.log").value_or(""), HasSubstr(std::to_string(kMany + 1))) << "it goes on";
}

}  // namespace
}  // namespace r2cc::daemon
