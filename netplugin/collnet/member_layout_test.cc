#include "netplugin/collnet/member_layout.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "plan/schedule/generators.h"

namespace r2cc::collnet {
namespace {

std::vector<uint32_t> MembersOf(const MemberLayout::Group& group) {
  std::vector<uint32_t> members;
  for (const auto& each : group.contributions) members.push_back(each.member);
  return members;
}

// The owner of a share adds what all others have, once, in the members' order with its own value in its place.
TEST(MemberLayoutTest, AnOwnerAddsAllContributionsAtOnceInTheMembersOrder) {
  const std::vector<double> shares = {1, 1, 1, 1};
  const auto schedule = std::shared_ptr<plan::Schedule>(plan::MakeDirect(plan::Collective::kAllReduce, 4096, 2, shares));
  const MemberLayout layout(schedule, 2);
  for (uint32_t block = 0; block < schedule->blocks(); ++block) {
    const auto& groups = layout.GroupsOf(block);
    if (schedule->OwnerOf(block) != 2) {
      EXPECT_TRUE(groups.empty()) << "the sum of block " << block << " is received, not made";
      continue;
    }
    ASSERT_EQ(groups.size(), 1u);
    EXPECT_EQ(groups[0].first_receive, 0u);
    EXPECT_EQ(groups[0].receives, 3u);
    EXPECT_EQ(MembersOf(groups[0]), (std::vector<uint32_t>{0, 1, 2, 3}));
    EXPECT_TRUE(groups[0].contributions[2].own);
  }
  EXPECT_EQ(layout.staging_bytes(), 3 * 4096 / 4u);
  EXPECT_EQ(layout.sends().size(), 3u);
  EXPECT_EQ(layout.receives().size(), 3u);
}

// In a ring a member adds to a block what has come so far, sends it on, and receives the sum later.
TEST(MemberLayoutTest, ARingAddsOneAtATime) {
  const auto schedule = std::shared_ptr<plan::Schedule>(plan::MakeRing(4, 4096));
  for (uint32_t member = 0; member < 4; ++member) {
    const MemberLayout layout(schedule, member);
    uint32_t groups = 0;
    for (uint32_t block = 0; block < schedule->blocks(); ++block) {
      for (const auto& group : layout.GroupsOf(block)) {
        ++groups;
        EXPECT_EQ(group.receives, 1u);
        EXPECT_EQ(group.contributions.size(), 2u);
      }
    }
    EXPECT_EQ(groups, 3u);
    EXPECT_EQ(layout.sends().size(), 1u);
  }
}

// Contributions land beside each other, never on each other.
TEST(MemberLayoutTest, EachContributionHasItsOwnPlace) {
  const std::vector<double> uneven = {1, 0, 2.5, 3, 0.25};
  for (const auto& schedule : {std::shared_ptr<plan::Schedule>(plan::MakeDirect(plan::Collective::kAllReduce, 10'000, 3, uneven)),
                               std::shared_ptr<plan::Schedule>(plan::MakeOptcc(5, 10'000, 1, 0.5, 4)),
                               std::shared_ptr<plan::Schedule>(plan::MakeR2ccAllReduce(5, 10'000, {1}, 0.25, 0.25, 2))}) {
    for (uint32_t member = 0; member < 5; ++member) {
      const MemberLayout layout(schedule, member);
      std::set<uint64_t> bytes;
      uint64_t count = 0;
      for (uint32_t block = 0; block < schedule->blocks(); ++block) {
        for (const auto& group : layout.GroupsOf(block)) {
          EXPECT_EQ(group.contributions.size(), group.receives + 1);
          for (const auto& each : group.contributions) {
            if (each.own) continue;
            const uint64_t length = schedule->RangeOf(block, 1).bytes();
            for (uint64_t i = 0; i < length; ++i) bytes.insert(each.staging + i);
            count += length;
          }
        }
      }
      EXPECT_EQ(bytes.size(), count) << schedule->name() << " member " << member;
      EXPECT_EQ(count, layout.staging_bytes());
      EXPECT_TRUE(bytes.empty() || *bytes.rbegin() == count - 1) << "no gaps";
    }
  }
}

TEST(MemberLayoutTest, AFlowHasTheWeightOfItsSendersLane) {
  const std::shared_ptr<plan::Schedule> schedule = plan::MakeOptcc(5, 1 << 20, 1, 0.75, 4);
  for (uint32_t member = 0; member < 5; ++member) {
    const MemberLayout layout(schedule, member);
    for (const auto& flow : layout.sends()) EXPECT_EQ(flow.weight, schedule->Weight(member, flow.from_lane));
    for (const auto& flow : layout.receives()) EXPECT_EQ(flow.weight, schedule->Weight(flow.peer, flow.from_lane));
  }
}

}  // namespace
}  // namespace r2cc::collnet
