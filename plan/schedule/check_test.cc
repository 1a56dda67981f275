// The checker refuses wrong schedules, and names the fault: by hand for each kind of wrong, then thousands of faults in right schedules.
#include "plan/schedule/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "plan/schedule/progress.h"
#include "plan/schedule/right_schedules.h"
#include "plan/schedule/test_schedules.h"

namespace r2cc::plan {
namespace {

using testing::HasSubstr;

constexpr StepKind kAdds = StepKind::kReceiveReduce;
constexpr StepKind kOverwrites = StepKind::kReceive;

// 0 sends its block to 1, which adds it and sends the sum back.
ListedSchedule ThereAndBack() {
  ListedSchedule schedule(2, 1);
  schedule.Add(0, 1, 0, {}, {.kind = kAdds});
  schedule.Add(1, 0, 0, {.after_receives = 1}, {.kind = kOverwrites, .after_sends = 1});
  return schedule;
}

TEST(CheckTest, AcceptsThereAndBack) { EXPECT_EQ(CheckSchedule(ThereAndBack()), ""); }

TEST(CheckTest, RefusesAResultWithoutAContribution) {
  ListedSchedule schedule(3, 1);
  schedule.Add(0, 1, 0, {}, {.kind = kAdds});
  schedule.Add(1, 0, 0, {.after_receives = 1}, {.kind = kOverwrites, .after_sends = 1});
  EXPECT_THAT(CheckSchedule(schedule), HasSubstr("member 0 ends without the contribution of 2"));
}

TEST(CheckTest, RefusesAStepWithoutAPath) {
  const auto schedule = MakeDirect(Collective::kAllReduce, 4096, 2, std::vector<double>{0.5, 0, 0.5});
  const auto none_between = [](uint32_t one, uint32_t other) {
    return [one, other](uint32_t a, uint32_t b) { return std::minmax(a, b) != std::minmax(one, other); };
  };
  EXPECT_THAT(CheckPaths(*schedule, none_between(1, 2)), HasSubstr("there is no path between members 1 and 2"));
  EXPECT_THAT(CheckPaths(*schedule, none_between(0, 2)), HasSubstr("there is no path between members 0 and 2"));
  const auto one_owner = MakeDirect(Collective::kAllReduce, 4096, 2, std::vector<double>{0, 0, 1});
  EXPECT_EQ(CheckPaths(*one_owner, none_between(0, 1)), "");
  EXPECT_EQ(CheckSchedule(*one_owner), "");
}

TEST(CheckTest, RefusesAContributionTwice) {
  ListedSchedule schedule(2, 1);
  schedule.Add(0, 1, 0, {}, {.kind = kAdds});
  schedule.Add(0, 1, 1, {}, {.kind = kAdds});
  EXPECT_THAT(CheckSchedule(schedule), HasSubstr("adds a contribution that is already in block 0"));
}

TEST(CheckTest, RefusesToSendWhatIsNotThere) {
  ListedSchedule schedule(2, 2, Collective::kAllGather);
  schedule.Add(0, 1, 0, {.block = 1}, {.kind = kOverwrites});
  EXPECT_THAT(CheckSchedule(schedule), HasSubstr("before anything is in it"));
}

TEST(CheckTest, RefusesToOverwriteWhatIsStillToBeSent) {
  ListedSchedule hasty(2, 1);
  hasty.Add(0, 1, 0, {}, {.kind = kAdds});
  hasty.Add(1, 0, 0, {.after_receives = 1}, {.kind = kOverwrites});
  EXPECT_THAT(CheckSchedule(hasty), HasSubstr("waits for 0 sends, but 1 must come first"));
}

TEST(CheckTest, RefusesTwoReceivesThatOverwriteInAnyOrder) {
  ListedSchedule schedule(3, 1);
  schedule.Add(0, 2, 0, {}, {.kind = kOverwrites});
  schedule.Add(1, 2, 1, {}, {.kind = kOverwrites});
  EXPECT_THAT(CheckSchedule(schedule), HasSubstr("in any order"));
}

TEST(CheckTest, RefusesASendThatMayGoBeforeOrAfterAReceive) {
  ListedSchedule schedule(3, 1);
  schedule.Add(0, 1, 0, {}, {.kind = kAdds});
  schedule.Add(2, 1, 1, {}, {.kind = kAdds});
  schedule.Add(1, 0, 0, {.after_receives = 1}, {.kind = kOverwrites, .after_sends = 1});
  EXPECT_THAT(CheckSchedule(schedule), HasSubstr("waits for 1 receives, of which 2 must come first"));
}

// Each waits for the other's block before it sends its own: right in every order that begins, but nothing ever begins.
TEST(CheckTest, RefusesADeadlock) {
  ListedSchedule schedule(2, 2);
  schedule.Add(0, 1, 0, {.block = 0, .after_receives = 1}, {.kind = kAdds});
  schedule.Add(1, 0, 0, {.block = 0, .after_receives = 1}, {.kind = kAdds});
  EXPECT_THAT(CheckSchedule(schedule), HasSubstr("for ever"));
}

// Member 2 wants 1's block before 0's; 1 sends it only after it has one of 0, which 0 sends after the one that 2 does not take yet.
TEST(CheckTest, RefusesADeadlockOfQueues) {
  ListedSchedule crossed(3, 2);
  crossed.Add(1, 2, 0, {.block = 1, .after_receives = 1}, {.kind = kAdds});
  crossed.Add(0, 2, 0, {.block = 0}, {.kind = kAdds});
  crossed.Add(0, 1, 0, {.block = 1}, {.kind = kAdds});
  EXPECT_THAT(CheckSchedule(crossed), HasSubstr("for ever"));
}

TEST(CheckTest, RefusesNamesThatDoNotExist) {
  ListedSchedule schedule = ThereAndBack();
  for (const auto& [fault, expected] : {std::pair{Fault::kOtherPeer, "is nobody"}, std::pair{Fault::kOtherLane, "has no lane 1"}})
    EXPECT_THAT(CheckSchedule(FaultySchedule(schedule, fault, 0, 0, false, 0)), HasSubstr(expected));
  ListedSchedule beyond(2, 1);
  beyond.Add(0, 1, 0, {.block = 7}, {.kind = kAdds});
  EXPECT_THAT(CheckSchedule(beyond), HasSubstr("block 7 does not exist"));
}

// The checker looks at one order of events. Any other gives the same: transfers begin when they may and end in random order, the bytes
// being read when a transfer begins and written when it ends.
TEST(CheckTest, AnAcceptedScheduleIsRightInEveryOrder) {
  std::mt19937_64 random(23);
  for (const std::unique_ptr<Schedule>& schedule : RightSchedules()) {
    for (int order = 0; order < 20; ++order) {
      const auto members = schedule->members();
      std::vector<uint64_t> holds(size_t{members} * schedule->blocks(), 0);
      const auto at = [&](uint32_t member, uint32_t block) -> uint64_t& { return holds[size_t{member} * schedule->blocks() + block]; };
      const bool gathers = schedule->collective() == Collective::kAllGather;
      for (uint32_t member = 0; member < members; ++member)
        for (uint32_t block = 0; block < schedule->blocks(); ++block)
          if (!gathers || schedule->OwnerOf(block) == member) at(member, block) = uint64_t{1} << member;
      struct UnderWay {
        Transfer transfer;
        std::vector<uint64_t> bytes;
      };
      std::vector<UnderWay> under_way;
      const auto begin = [&](const Transfer& transfer) {
        UnderWay& now = under_way.emplace_back(transfer);
        for (uint32_t i = 0; i < transfer.send.blocks; ++i) now.bytes.push_back(at(transfer.from, transfer.send.block + i));
      };
      Progress progress(*schedule, false);
      progress.Start(begin);
      while (!under_way.empty()) {
        std::swap(under_way[random() % under_way.size()], under_way.back());
        const UnderWay ends = std::move(under_way.back());
        under_way.pop_back();
        for (uint32_t i = 0; i < ends.transfer.receive.blocks; ++i) {
          uint64_t& there = at(ends.transfer.to, ends.transfer.receive.block + i);
          if (ends.transfer.receive.kind == StepKind::kReceiveReduce) {
            ASSERT_EQ(there & ends.bytes[i], 0U) << schedule->name();
            there |= ends.bytes[i];
          } else {
            there = ends.bytes[i];
          }
        }
        progress.Complete(ends.transfer, begin);
      }
      ASSERT_TRUE(progress.finished()) << progress.Stuck();
      for (uint32_t member = 0; member < members; ++member) {
        for (uint32_t block = 0; block < schedule->blocks(); ++block) {
          if (schedule->collective() == Collective::kReduceScatter && schedule->OwnerOf(block) != member) continue;
          const uint64_t all = gathers ? uint64_t{1} << schedule->OwnerOf(block) : (uint64_t{1} << members) - 1;
          ASSERT_EQ(at(member, block), all) << schedule->name() << " member " << member << " block " << block;
        }
      }
    }
  }
}

// One fault at a random place of a right schedule: each must be refused.
TEST(CheckTest, RefusesEveryFaultThatMatters) {
  std::mt19937_64 random(1);
  int tried = 0;
  for (const std::unique_ptr<Schedule>& schedule : RightSchedules()) {
    ASSERT_EQ(CheckSchedule(*schedule), "") << schedule->name();
    for (int round = 0; round < 400; ++round) {
      const auto member = static_cast<uint32_t>(random() % schedule->members());
      const auto lane = static_cast<uint32_t>(random() % schedule->Lanes(member));
      const bool receives = random() % 2 == 1;
      const uint32_t size = receives ? schedule->Receives(member, lane) : schedule->Sends(member, lane);
      if (size == 0) continue;
      const FaultySchedule faulty(*schedule, static_cast<Fault>(round % kFaults), member, lane, receives,
                                  static_cast<uint32_t>(random() % size));
      if (!faulty.Matters()) continue;
      ++tried;
      EXPECT_NE(CheckSchedule(faulty), "") << schedule->name() << ": fault " << round % kFaults << " at member " << member << " lane "
                                           << lane << (receives ? " receives" : " sends");
    }
  }
  EXPECT_GT(tried, 3000);
}

}  // namespace
}  // namespace r2cc::plan
