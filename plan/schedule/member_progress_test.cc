// Members that know nothing of each other but the messages that come: each has its own MemberProgress and its own vector, and between them
// are queues.

#include "plan/schedule/member_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <random>
#include <tuple>
#include <vector>

#include "plan/schedule/right_schedules.h"
#include "plan/schedule/test_schedules.h"

namespace r2cc::plan {
namespace {

using Due = MemberProgress::Due;

constexpr StepKind kAdds = StepKind::kReceiveReduce;
constexpr StepKind kOverwrites = StepKind::kReceive;

// One member alone, and what it may begin.
struct One {
  One(const Schedule& schedule, uint32_t member, uint32_t window = 1) : progress(schedule, member, window) {
    progress.Start([this](const Due& due) { began.push_back(due); });
  }
  // "s0" is the first send of some lane, "r2" the third receive; what was not asked for yet.
  std::string Began() {
    std::string text;
    for (const Due& due : began) text += (text.empty() ? "" : " ") + std::string(due.receives() ? "r" : "s") + std::to_string(due.index);
    began.clear();
    return text;
  }
  void Sent(uint32_t lane, uint32_t index = 0) {
    progress.SendDone(lane, index, [this](const Due& due) { began.push_back(due); });
  }
  void Received(uint32_t lane, uint32_t index = 0) {
    progress.ReceiveDone(lane, index, [this](const Due& due) { began.push_back(due); });
  }

  MemberProgress progress;
  std::vector<Due> began;
};

// 0 sends its block to 1, which adds it and sends the sum back.
ListedSchedule ThereAndBack() {
  ListedSchedule schedule(2, 1);
  schedule.Add(0, 1, 0, {}, {.kind = kAdds});
  schedule.Add(1, 0, 0, {.after_receives = 1}, {.kind = kOverwrites, .after_sends = 1});
  return schedule;
}

TEST(MemberProgressTest, AReceiveThatOverwritesWaitsForTheSendOfWhatIsThere) {
  const ListedSchedule schedule = ThereAndBack();
  One member(schedule, 0);
  EXPECT_EQ(member.Began(), "s0");
  EXPECT_THAT(member.progress.Waiting(), testing::HasSubstr("member 0 lane 0: send 0 of block 0 waits for its peer 1"));
  member.Sent(0);
  EXPECT_EQ(member.Began(), "r0");
  EXPECT_FALSE(member.progress.finished());
  member.Received(0);
  EXPECT_EQ(member.Began(), "");
  EXPECT_TRUE(member.progress.finished());
  EXPECT_EQ(member.progress.Waiting(), "");
}

TEST(MemberProgressTest, ASendWaitsForTheSum) {
  const ListedSchedule schedule = ThereAndBack();
  One member(schedule, 1);
  EXPECT_EQ(member.Began(), "r0");
  EXPECT_EQ(member.progress.UnderWay(0, true).front().step.peer, 0u);
  member.Received(0);
  EXPECT_EQ(member.Began(), "s0");
  member.Sent(0);
  EXPECT_TRUE(member.progress.finished());
}

TEST(MemberProgressTest, AStepOfSeveralBlocksWaitsForEachOfThem) {
  ListedSchedule schedule(3, 3);
  for (uint32_t block = 0; block < 3; ++block) schedule.Add(0, 1, block, {.block = block}, {.kind = kAdds});
  schedule.Add(1, 2, 3, {.blocks = 3, .after_receives = 1}, {.kind = kOverwrites, .blocks = 3});
  One member(schedule, 1);
  EXPECT_EQ(member.Began(), "r0 r0 r0");
  member.Received(1);
  member.Received(0);
  EXPECT_EQ(member.Began(), "");
  member.Received(2);
  EXPECT_EQ(member.Began(), "s0");
}

TEST(MemberProgressTest, OneSendALaneAtATimeAndLanesDoNotWaitForEachOther) {
  ListedSchedule schedule(2, 4, Collective::kAllGather);
  for (uint32_t block : {0u, 2u})
    for (uint32_t lane : {0u, 1u}) schedule.Add(0, 1, lane, {.block = block}, {.kind = kOverwrites});
  One member(schedule, 0);
  EXPECT_EQ(member.Began(), "s0 s0");
  member.Sent(1);
  EXPECT_EQ(member.Began(), "s1");
  member.Sent(1, 1);
  EXPECT_EQ(member.Began(), "");
  EXPECT_FALSE(member.progress.finished());
}

TEST(MemberProgressTest, AsManyAsTheWindowAreUnderWayInTheirOrderAndDoneInAny) {
  ListedSchedule schedule(2, 4, Collective::kAllGather);
  for (uint32_t block = 0; block < 4; ++block) schedule.Add(0, 1, 0, {.block = block}, {.kind = kOverwrites});
  One member(schedule, 0, 3);
  EXPECT_EQ(member.Began(), "s0 s1 s2");
  member.Sent(0, 1);
  EXPECT_EQ(member.Began(), "s3");
  ASSERT_EQ(member.progress.UnderWay(0, false).size(), 3u);
  EXPECT_EQ(member.progress.UnderWay(0, false)[1].index, 2u);
  for (const uint32_t index : {3, 0, 2}) member.Sent(0, index);
  EXPECT_TRUE(member.progress.finished());
}

// A message that is not due keeps back later ones of its lane, however wide the window is.
TEST(MemberProgressTest, ALanesStepsBeginInTheirOrder) {
  ListedSchedule schedule(3, 2);
  schedule.Add(0, 1, 0, {.block = 0}, {.kind = kAdds});
  schedule.Add(1, 2, 1, {.block = 0, .after_receives = 1}, {.kind = kAdds});
  schedule.Add(1, 2, 1, {.block = 1}, {.kind = kAdds});
  One member(schedule, 1, 8);
  EXPECT_EQ(member.Began(), "r0");
  member.Received(0);
  EXPECT_EQ(member.Began(), "s0 s1");
}

TEST(MemberProgressDeathTest, AStepThatIsNotUnderWayIsNotDone) {
  const ListedSchedule schedule = ThereAndBack();
  One member(schedule, 0);
  EXPECT_DEATH(member.Received(0), "");
  member.Sent(0);
  EXPECT_DEATH(member.Sent(0), "");
  EXPECT_DEATH(member.Sent(1), "");
  EXPECT_DEATH(member.Received(0, 1), "");
}

// The header's requirements on a network and on the code that moves the bytes, and no more. A message's bytes are read from the sender's
// vector when they arrive, and once more just before the send counts as done: what a failed rail makes necessary. Some messages are copied
// when they are sent, and done at once.
class Cluster {
 public:
  Cluster(const Schedule& schedule, uint32_t window, uint64_t seed) : schedule_(schedule), random_(seed) {
    for (uint32_t id = 0; id < schedule.members(); ++id) {
      Member& member = members_.emplace_back(schedule, id, window);
      for (uint32_t block = 0; block < schedule.blocks(); ++block)
        if (schedule.collective() != Collective::kAllGather || schedule.OwnerOf(block) == id) member.holds[block] = uint64_t{1} << id;
    }
    for (Member& member : members_) member.progress.Start([&](const Due& due) { Begin(member, due); });
  }

  void Run() {
    SettleCopied();
    while (!events_.empty()) {
      std::swap(events_[random_() % events_.size()], events_.back());
      const Event event = events_.back();
      events_.pop_back();
      event.placed ? Acknowledge(event) : Place(event);
      if (testing::Test::HasFatalFailure()) return;
    }
  }

  void ExpectTheResult() const {
    for (const Member& member : members_) {
      EXPECT_EQ(member.progress.Waiting(), "");
      for (uint32_t block = 0; block < schedule_.blocks(); ++block) {
        const uint32_t owner = schedule_.OwnerOf(block), id = member.progress.member();
        if (schedule_.collective() == Collective::kReduceScatter && owner != id) continue;
        const uint64_t all =
            schedule_.collective() == Collective::kAllGather ? uint64_t{1} << owner : (uint64_t{1} << schedule_.members()) - 1;
        ASSERT_EQ(member.holds[block], all) << schedule_.name() << " member " << id << " block " << block;
      }
    }
  }

 private:
  struct Member {
    Member(const Schedule& schedule, uint32_t id, uint32_t window) : progress(schedule, id, window), holds(schedule.blocks()) {}
    MemberProgress progress;
    std::vector<uint64_t> holds;  // whose contributions are in each block
  };
  // The flow (member, lane) -> (member, lane): what was sent, and what may be received, in order, and is not matched yet.
  using FlowName = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>;
  struct Message {
    Due due;
    bool copied = false;
    std::vector<uint64_t> bytes;  // as they were when it was sent
  };
  struct Flow {
    std::deque<Message> sends;
    std::deque<Due> receives;
  };
  // A message that both ends are ready for: under way, or placed and not acknowledged.
  struct Event {
    FlowName flow;
    Message send;
    Due receive;
    bool placed = false;
  };

  std::vector<uint64_t> Read(const Member& member, const Step& step) const {
    const auto first = member.holds.begin() + step.block;
    return {first, first + step.blocks};
  }

  void Begin(Member& member, const Due& due) {
    const uint32_t id = member.progress.member();
    const Step& step = due.step;
    if (due.receives()) {
      const FlowName name{step.peer, step.peer_lane, id, due.lane};
      flows_[name].receives.push_back(due);
      return Meet(name);
    }
    const FlowName name{id, due.lane, step.peer, step.peer_lane};
    const bool copied = random_() % 4 == 0;
    flows_[name].sends.push_back({due, copied, Read(member, step)});
    if (copied) done_at_once_.emplace_back(id, due.lane, due.index);
    Meet(name);
  }
  void Meet(const FlowName& name) {
    Flow& flow = flows_[name];
    if (flow.sends.empty() || flow.receives.empty()) return;
    events_.push_back({name, flow.sends.front(), flow.receives.front()});
    flow.sends.pop_front();
    flow.receives.pop_front();
  }
  void SendDone(uint32_t id, uint32_t lane, uint32_t index) {
    Member& member = members_[id];
    member.progress.SendDone(lane, index, [&](const Due& due) { Begin(member, due); });
  }
  // begin must not call back.
  void SettleCopied() {
    while (!done_at_once_.empty()) {
      const auto [id, lane, index] = done_at_once_.back();
      done_at_once_.pop_back();
      SendDone(id, lane, index);
    }
  }

  void Place(Event event) {
    const auto [from, from_lane, to, to_lane] = event.flow;
    ASSERT_EQ(event.send.due.step.block, event.receive.step.block);
    ASSERT_EQ(event.send.due.step.blocks, event.receive.step.blocks);
    if (!event.send.copied) {
      ASSERT_EQ(Read(members_[from], event.send.due.step), event.send.bytes) << schedule_.name() << ": changed under way";
    }
    Member& member = members_[to];
    for (uint32_t i = 0; i < event.receive.step.blocks; ++i) {
      uint64_t& there = member.holds[event.receive.step.block + i];
      const uint64_t kept = event.receive.step.kind == kAdds ? there : 0;
      ASSERT_EQ(kept & event.send.bytes[i], 0u) << schedule_.name() << ": added twice";
      there = kept | event.send.bytes[i];
    }
    // The two ends learn of it at different times.
    event.placed = true;
    if (!event.send.copied) events_.push_back(event);
    member.progress.ReceiveDone(to_lane, event.receive.index, [&](const Due& due) { Begin(member, due); });
    SettleCopied();
  }
  void Acknowledge(const Event& event) {
    const auto [from, from_lane, to, to_lane] = event.flow;
    ASSERT_EQ(Read(members_[from], event.send.due.step), event.send.bytes) << schedule_.name() << ": changed before it was acknowledged";
    SendDone(from, from_lane, event.send.due.index);
    SettleCopied();
  }

  const Schedule& schedule_;
  std::mt19937_64 random_;
  std::deque<Member> members_;
  std::map<FlowName, Flow> flows_;
  std::vector<Event> events_;
  std::vector<std::tuple<uint32_t, uint32_t, uint32_t>> done_at_once_;  // member, lane, number
};

TEST(MemberProgressTest, MembersThatKnowOnlyTheirOwnStepsEndWithTheResult) {
  for (const std::unique_ptr<Schedule>& schedule : RightSchedules()) {
    for (uint64_t seed = 1; seed <= 80; ++seed) {
      const uint32_t window = seed % 2 == 0 ? 1 : 1 + static_cast<uint32_t>(seed % 9);
      Cluster cluster(*schedule, window, seed);
      cluster.Run();
      ASSERT_FALSE(testing::Test::HasFatalFailure()) << schedule->name() << " window " << window << " seed " << seed;
      cluster.ExpectTheResult();
    }
  }
}

}  // namespace
}  // namespace r2cc::plan
