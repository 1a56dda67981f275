// An AllReduce of the plugin's own on a fabric that joins rail K to rail K alone, where two members have no rail in common any more. The
// production driver and peers in simulated time.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "netplugin/flow/tuning.h"
#include "tests/sim/group_member.h"
#include "tests/sim/process.h"

namespace r2cc::sim {
namespace {

constexpr int kRails = 2;
constexpr uint32_t kMembers = 4;
constexpr size_t kCount = 20'000;
constexpr uint64_t kRailBytesPerSecond = 1'000'000'000;
constexpr Nanos kDeadline = 30 * kNanosPerSecond;
// Without rail 1 the one, without rail 0 the other: both reach all others, and not each other.
constexpr uint32_t kOne = 1, kOther = 2;

class Group : private Tap {
 public:
  explicit Group(uint64_t seed) : timeline_(seed), network_(&timeline_) {
    for (int from = 0; from < static_cast<int>(kMembers); ++from)
      for (int to = 0; to < static_cast<int>(kMembers); ++to)
        for (int rail = kOobRail; rail < kRails && from != to; ++rail)
          for (int other = kOobRail; other < kRails; ++other)
            network_.SetPath({from, rail}, {to, other},
                             {.delay = 5'000, .jitter = 2'000, .rate_bytes_per_s = kRailBytesPerSecond, .reachable = rail == other});
    for (uint32_t number = 0; number < kMembers; ++number) {
      Member& member = *members_.emplace_back(std::make_unique<Member>());
      ProcessOptions options{.rails = kRails, .chunk_bytes = 16'384, .eager_bytes = 1024, .deadline = kDeadline};
      member.process = std::make_unique<Process>(&network_, static_cast<Tap*>(this), static_cast<int>(number), options);
      member.process->Listen(0);
    }
  }
  ~Group() override {
    for (const auto& member : members_) member->group.reset();
    timeline_.Clear();
  }

  // The jobs begin.
  void Start() {
    for (uint32_t number = 0; number < kMembers; ++number) members_[number]->process->progress = [this, number] { Progress(number); };
    for (const auto& member : members_) member->process->Wake();
  }
  void SetRail(uint32_t member, int rail, bool up) {
    const Port port{static_cast<int>(member), rail};
    up ? network_.UnblockPort(port) : network_.BlockPort(port);
    members_[member]->process->RailState(rail, up);
    members_[member]->rails += up ? 1 : -1;
  }
  void SetPartitioned(bool parted) {
    SetRail(kOne, 1, !parted);
    SetRail(kOther, 0, !parted);
  }
  // They call operations up to so many.
  void RunUntil(uint64_t operations) {
    wanted_ = operations;
    const Nanos limit = timeline_.now() + 2 * kDeadline;
    while (!AllDone() && timeline_.now() < limit && timeline_.RunNext()) continue;
    ASSERT_TRUE(AllDone());
    ASSERT_EQ(wrong(), 0u);
  }
  void RunFor(Nanos time) {
    for (const Nanos until = timeline_.now() + time; timeline_.now() < until && timeline_.RunNext();) continue;
  }
  void CallMore(uint64_t operations) { wanted_ += operations; }
  bool AllDone() const {
    return std::all_of(members_.begin(), members_.end(),
                       [this](const auto& member) { return member->group != nullptr && member->group->done() >= wanted_; });
  }
  const collnet::GroupDriver& driver(uint32_t member) const { return members_[member]->group->driver(); }
  std::vector<uint32_t> Parts(uint32_t member) const { return driver(member).newest_plan()->plan.parts; }
  uint64_t called() const { return wanted_; }
  uint64_t wrong() const {
    return std::accumulate(members_.begin(), members_.end(), uint64_t{0},
                           [](uint64_t sum, const auto& member) { return sum + member->group->wrong(); });
  }
  std::vector<std::string> Errors() const {
    std::vector<std::string> errors;
    for (const auto& member : members_) errors.push_back(member->group->driver().error());
    return errors;
  }

 private:
  struct Member {
    std::unique_ptr<Process> process;
    std::unique_ptr<GroupMember> group;
    int rails = kRails;
  };

  void Progress(uint32_t number) {
    Member& member = *members_[number];
    if (member.group == nullptr)
      member.group =
          std::make_unique<GroupMember>(member.process.get(), GroupMember::Options{kMembers, number, kCount, kRailBytesPerSecond});
    member.group->Progress(wanted_, member.rails, timeline_.now());
  }

  Timeline timeline_;
  Network network_;
  std::vector<std::unique_ptr<Member>> members_;
  uint64_t wanted_ = 0;
};

class PartitionedGroup : public testing::TestWithParam<uint64_t> {};

// For longer than the deadline; and then it is as before.
TEST_P(PartitionedGroup, BeginsWithoutAPathAndTakesItOnceItIsThere) {
  Group group(GetParam());
  group.SetPartitioned(true);
  group.Start();
  group.RunUntil(30);
  const auto of_sound = collnet::PlanSpec::kWhole / 2;
  for (uint32_t member = 0; member < kMembers; ++member)
    EXPECT_EQ(group.Parts(member), (std::vector<uint32_t>{of_sound, 0, 0, of_sound})) << member;
  EXPECT_EQ(group.driver(kOne).unreachable(), std::vector<uint32_t>{kOther});
  group.RunFor(kDeadline + 5 * kNanosPerSecond);
  group.RunUntil(40);
  group.SetPartitioned(false);
  group.RunFor(2 * net::tuning::kPathBackAfter);
  group.RunUntil(80);
  EXPECT_EQ(group.Parts(0), (std::vector<uint32_t>(kMembers, collnet::PlanSpec::kWhole / kMembers)));
  EXPECT_EQ(group.Errors(), std::vector<std::string>(kMembers));
}

// To some moment, another with each seed, in the midst of operations.
void RunIntoOperations(Group* group, uint64_t seed) {
  group->Start();
  group->RunUntil(10);
  group->CallMore(30);
  group->RunFor(static_cast<Nanos>(seed) * 100'000);
}

TEST_P(PartitionedGroup, IsWaitedForWhenAPairIsCutInMidOperation) {
  Group group(GetParam());
  RunIntoOperations(&group, GetParam());
  ASSERT_FALSE(group.AllDone());
  group.SetPartitioned(true);
  group.RunFor(2 * net::tuning::kPathLostAfter);
  EXPECT_FALSE(group.AllDone());
  EXPECT_EQ(group.Errors(), std::vector<std::string>(kMembers));
  group.SetPartitioned(false);
  group.RunUntil(group.called() + 20);
  EXPECT_EQ(group.Parts(0)[kOne], 0u);
  EXPECT_EQ(group.Parts(0)[kOther], 0u);
  // What follows the next plan needs no path between them, not even for longer than the deadline: then their flows have failed for good.
  group.SetPartitioned(true);
  group.RunUntil(group.called() + 20);
  group.RunFor(kDeadline + 5 * kNanosPerSecond);
  group.RunUntil(group.called() + 20);
  group.SetPartitioned(false);
  group.RunFor(2 * net::tuning::kPathBackAfter);
  group.RunUntil(group.called() + 40);
  EXPECT_EQ(group.Parts(0)[kOne], 0u);
  EXPECT_EQ(group.Errors(), std::vector<std::string>(kMembers));
}

TEST_P(PartitionedGroup, IsAnErrorOfAllAtTheDeadlineIfNoPathComesBack) {
  Group group(GetParam());
  RunIntoOperations(&group, GetParam());
  group.SetPartitioned(true);
  group.RunFor(kDeadline - kNanosPerSecond);
  EXPECT_EQ(group.Errors(), std::vector<std::string>(kMembers));
  group.RunFor(3 * kNanosPerSecond);
  for (const std::string& error : group.Errors()) EXPECT_NE(error.find(" gave up on "), std::string::npos) << error;
  EXPECT_EQ(group.wrong(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, PartitionedGroup, testing::Range<uint64_t>(1, 5));

}  // namespace
}  // namespace r2cc::sim
