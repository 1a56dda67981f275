// Groups in which two members have no path to each other.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "netplugin/collnet/driver_world.h"
#include "netplugin/flow/tuning.h"
#include "plan/schedule/check.h"

namespace r2cc::collnet {
namespace {

using Pair = std::pair<uint32_t, uint32_t>;

constexpr uint32_t kMembers = 4;

class PartitionedGroup : public GroupTest {
 protected:
  void MakePartitioned(const std::vector<Pair>& pairs, Nanos deadline = 0) {
    for (const auto& [a, b] : pairs) network_.Cut(a, b);
    Make(kMembers, deadline);
    for (Member& member : members_) member.driver->SetCapacity(1'000'000);
  }
  void CallAll(int operations) {
    for (int i = 0; i < operations; ++i)
      for (uint32_t member = 0; member < kMembers; ++member) Call(member, 3000);
  }
  void RunAll(int operations) {
    for (int i = 0; i < operations; ++i) {
      CallAll(1);
      RunUntil([this] { return AllDone(); });
    }
  }
  void RunFor(Nanos time) {
    for (const Nanos until = now_ + time; now_ < until;) Turn();
  }
  // That was posted on a flow between the two.
  bool AnyPosted(const Pair& pair) const {
    return std::any_of(network_.flows().begin(), network_.flows().end(), [&](const auto& flow) {
      return Pair(std::minmax(flow->from, flow->to)) == pair && (flow->sent > 0 || !flow->sends.empty() || !flow->receives.empty());
    });
  }
  std::vector<uint32_t> Parts(uint32_t member) const { return members_[member].driver->newest_plan()->plan.parts; }
  // Each owns something.
  bool AllOwn() const {
    const std::vector<uint32_t> parts = Parts(0);
    return std::count(parts.begin(), parts.end(), 0u) == 0;
  }
  bool NoErrors() const {
    return std::all_of(members_.begin(), members_.end(), [](const Member& member) { return member.driver->error().empty(); });
  }
};

// Also where it is member 0, whose stamps all wait for, that does not hear another.
TEST_F(PartitionedGroup, WorksFromTheFirstOperationOnWithoutAMessageBetweenTheTwo) {
  const std::vector<std::vector<Pair>> each = {{{0, 3}}, {{1, 2}}, {{0, 1}, {0, 2}}, {{0, 1}, {1, 2}}, {{1, 2}, {1, 3}, {2, 3}}};
  for (const std::vector<Pair>& pairs : each) {
    SCOPED_TRACE(testing::PrintToString(pairs));
    network_ = FakeNetwork(5);
    MakePartitioned(pairs);
    RunUntil([this] { return AllConnected(); });
    RunAll(40);
    ExpectSums();
    EXPECT_TRUE(NoErrors());
    const auto have_path = [&](uint32_t a, uint32_t b) {
      return std::find(pairs.begin(), pairs.end(), Pair(std::minmax(a, b))) == pairs.end();
    };
    for (uint32_t member = 0; member < kMembers; ++member) {
      const Stamp& stamp = *members_[member].driver->newest_plan();
      EXPECT_EQ(stamp.epoch, 1u);
      EXPECT_EQ(plan::CheckPaths(*MakeSchedule(stamp.plan, kMembers, 24'000), have_path), "");
    }
    for (const Pair& pair : pairs) EXPECT_FALSE(AnyPosted(pair)) << "what waits for a path fails at the deadline";
    members_.clear();
  }
}

TEST_F(PartitionedGroup, UsesAPathAgainOnceItHasStayed) {
  MakePartitioned({{0, 1}});
  RunUntil([this] { return AllConnected(); });
  RunAll(5);
  EXPECT_FALSE(AllOwn());
  network_.Heal(0, 1);
  RunFor(net::tuning::kPathBackAfter / 2);
  RunAll(20);
  EXPECT_FALSE(AllOwn());
  RunFor(net::tuning::kPathBackAfter);
  RunAll(20);
  EXPECT_TRUE(AllOwn());
  EXPECT_TRUE(NoErrors());
  EXPECT_TRUE(AnyPosted({0, 1}));
  ExpectSums();
}

// What is stamped stands: it waits for the path, and what comes after it does without.
TEST_F(PartitionedGroup, APairThatIsCutInMidOperationIsWaitedForAndThenAvoided) {
  MakePartitioned({});
  RunUntil([this] { return AllConnected(); });
  RunAll(3);
  CallAll(2);
  Turn();
  network_.Cut(1, 2);
  RunFor(2 * net::tuning::kPathLostAfter);
  EXPECT_FALSE(AllDone());
  EXPECT_TRUE(NoErrors());
  network_.Heal(1, 2);
  RunUntil([this] { return AllDone(); });
  RunAll(20);
  EXPECT_EQ(Parts(3)[1], 0u);
  EXPECT_EQ(Parts(3)[2], 0u);
  network_.Cut(1, 2);
  RunAll(20);
  ExpectSums();
  EXPECT_TRUE(NoErrors());
}

// There is nobody to forward anything meanwhile.
TEST_F(PartitionedGroup, AMemberThatWasUnreachableReceivesAllOnceItIsBack) {
  for (const uint32_t gone : {0u, 3u}) {
    SCOPED_TRACE(gone);
    network_ = FakeNetwork(7);
    MakePartitioned({});
    RunUntil([this] { return AllConnected(); });
    RunAll(3);
    const auto others = [&](const std::function<void(uint32_t)>& each) {
      for (uint32_t member = 0; member < kMembers; ++member)
        if (member != gone) each(member);
    };
    others([&](uint32_t member) { network_.Cut(gone, member); });
    CallAll(40);
    RunFor(2 * net::tuning::kPathLostAfter);
    EXPECT_FALSE(AllDone());
    others([&](uint32_t member) { network_.Heal(gone, member); });
    RunUntil([this] { return AllDone(); });
    RunAll(40);
    ExpectSums();
    EXPECT_TRUE(NoErrors());
    members_.clear();
  }
}

TEST_F(PartitionedGroup, IfNoMemberReachesAllNoneIsConnectedAndTheDeadlineEndsAll) {
  MakePartitioned({{0, 1}, {2, 3}}, 5 * kNanosPerSecond);
  RunFor(2 * net::tuning::kPathLostAfter);
  for (const Member& member : members_) {
    EXPECT_FALSE(member.driver->connected());
    EXPECT_EQ(member.driver->unreachable().size(), 1u);
  }
  CallAll(1);
  RunUntil([this] { return AllFailed(); });
  for (const Member& member : members_)
    EXPECT_NE(member.driver->error().find("made no progress"), std::string::npos) << member.driver->error();
}

// Although those who have given up are not polled any more.
TEST_F(PartitionedGroup, AFailureIsForwarded) {
  MakePartitioned({{0, 1}, {0, 2}});
  RunUntil([this] { return AllConnected(); });
  CallAll(1);
  Bytes rubbish(kGreetingBytes);
  network_.Open(1, 0)->sends.push_back({rubbish.data(), rubbish.size(), {}});
  network_.Heal(0, 1);
  poll_failed_ = false;
  RunUntil([this] { return AllFailed(); });
  for (const Member& member : members_)
    EXPECT_NE(member.driver->error().find("cannot be one of this group"), std::string::npos) << member.driver->error();
}

}  // namespace
}  // namespace r2cc::collnet
