#include "netplugin/collnet/plan_spec.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "plan/schedule/check.h"

namespace r2cc::collnet {
namespace {

using Kind = PlanSpec::Kind;

PlanSpec Direct(std::vector<uint32_t> parts) {
  PlanSpec spec;
  spec.kind = Kind::kDirect;
  spec.pieces_max = 4;
  spec.parts = std::move(parts);
  return spec;
}

constexpr uint32_t kHalf = PlanSpec::kWhole / 2;

TEST(PlanSpecTest, IsDescribedForPeople) {
  EXPECT_EQ(Describe(Direct({kHalf, kHalf / 2, kHalf / 2})), "members own 50.0, 25.0, 25.0 %");
  EXPECT_EQ(Describe(Direct(std::vector<uint32_t>(4096, 256))).substr(0, 26), "members own 0.0, 0.0, 0.0,");
  EXPECT_LT(Describe(Direct(std::vector<uint32_t>(4096, 256))).size(), 200u);
  PlanSpec spec;
  spec.kind = Kind::kRing;
  EXPECT_EQ(Describe(spec), "a ring");
  spec.kind = Kind::kOptcc;
  spec.degraded = 2;
  spec.kept = kHalf;
  EXPECT_EQ(Describe(spec), "OptCC, member 2 keeps 50.0 %");
}

TEST(PlanSpecTest, IsUnevenWhereMembersDifferAndNotByRounding) {
  EXPECT_FALSE(IsUneven(PlanFor({5, 5, 5}, 4096)));
  EXPECT_FALSE(IsUneven(PlanFor({7, 7, 7, 7, 7}, 4096)));
  EXPECT_TRUE(IsUneven(PlanFor({3, 4, 4, 4}, 4096)));
  PlanSpec spec;
  spec.kind = Kind::kRing;
  EXPECT_FALSE(IsUneven(spec));
  spec.kind = Kind::kOptcc;
  EXPECT_TRUE(IsUneven(spec));
}

TEST(PlanSpecTest, InvalidPlansAreRefused) {
  const PlanSpec fine = Direct({kHalf, kHalf - 5, 5});
  EXPECT_EQ(CheckPlanSpec(fine, 3), "");
  EXPECT_EQ(CheckPlanSpec(Direct({kHalf, kHalf, 5}), 3), "shares that add up to 1048581, not 1048576");
  EXPECT_EQ(CheckPlanSpec(Direct({kHalf, kHalf}), 3), "shares for 2 of 3 members");
  EXPECT_EQ(CheckPlanSpec(Direct({0xffffffff, 0xffffffff, 0xffffffff}), 3), "shares that add up to 12884901885, not 1048576");
  EXPECT_EQ(CheckPlanSpec(Direct({PlanSpec::kWhole}), 1), "a group of 1");
  EXPECT_NE(CheckPlanSpec(fine, 0), "");
  EXPECT_NE(CheckPlanSpec(fine, 0xffffffff), "");

  PlanSpec spec = fine;
  spec.pieces_max = 0;
  EXPECT_EQ(CheckPlanSpec(spec, 3), "0 pieces");
  spec.pieces_max = 1 << 30;
  EXPECT_NE(CheckPlanSpec(spec, 3), "");
  spec = fine;
  spec.piece_bytes = 0;
  EXPECT_EQ(CheckPlanSpec(spec, 3), "pieces of 0 bytes");
  spec = fine;
  spec.kind = static_cast<Kind>(77);
  EXPECT_EQ(CheckPlanSpec(spec, 3), "schedule 77, which this release does not know");

  for (const Kind kind : {Kind::kOptcc, Kind::kR2ccAllReduce}) {
    spec = fine;
    spec.kind = kind;
    spec.kept = kHalf;
    spec.degraded = 2;
    EXPECT_EQ(CheckPlanSpec(spec, 3), "");
    EXPECT_EQ(CheckPlanSpec(spec, 2), "a degraded member among 2");
    spec.degraded = 3;
    EXPECT_EQ(CheckPlanSpec(spec, 3), "member 3 of 3 is degraded");
    spec.degraded = 0;
    spec.kept = 0;
    EXPECT_NE(CheckPlanSpec(spec, 3), "");
    spec.kept = PlanSpec::kWhole;
    EXPECT_NE(CheckPlanSpec(spec, 3), "");
    spec.kept = kHalf;
    spec.y = PlanSpec::kWhole + 1;
    EXPECT_NE(CheckPlanSpec(spec, 3), "");
  }
  spec = Direct({kHalf, kHalf, 1});
  spec.kind = Kind::kRecursive;
  EXPECT_EQ(CheckPlanSpec(spec, 3), "");
  spec.parts = {kHalf, kHalf, 0};
  EXPECT_NE(CheckPlanSpec(spec, 3), "");
  spec.parts = {kHalf, 1, 1};
  EXPECT_EQ(CheckPlanSpec(spec, 3), "only one member has the highest bandwidth");
  spec.parts = {PlanSpec::kWhole + 1, PlanSpec::kWhole + 1, 1};
  EXPECT_NE(CheckPlanSpec(spec, 3), "");
}

// Whatever passes the check can be made, for any size, and is an AllReduce: no generator's own check ends the process.
TEST(PlanSpecTest, AnAcceptedPlanCanBeMade) {
  std::mt19937_64 random(1);
  int made = 0;
  for (int i = 0; i < 20'000 && made < 1500; ++i) {
    const auto members = static_cast<uint32_t>(2 + random() % 6);
    PlanSpec spec;
    spec.kind = static_cast<Kind>(1 + random() % 5);
    spec.pieces_max = 1 + random() % 9;
    const auto any = [&](uint32_t most) { return static_cast<uint32_t>(random() % 3 == 0 ? random() % 3 : random() % (most + 1)); };
    spec.degraded = any(members);
    spec.kept = any(PlanSpec::kWhole);
    spec.y = random() % 3 == 0 ? PlanSpec::kWhole - any(2) : any(PlanSpec::kWhole);
    uint32_t left = PlanSpec::kWhole;
    for (uint32_t m = 0; m < members; ++m) {
      const uint32_t part = m + 1 == members ? left : any(left);
      spec.parts.push_back(spec.kind == Kind::kRecursive ? (random() % 2 == 0 ? PlanSpec::kWhole : 1 + any(PlanSpec::kWhole - 1)) : part);
      left -= part;
    }
    if (!CheckPlanSpec(spec, members).empty()) continue;
    ++made;
    const uint64_t bytes = random() % 2 == 0 ? 1 + random() % 100 : 1 + random() % (1 << 20);
    const auto schedule = MakeSchedule(spec, members, bytes);
    ASSERT_EQ(plan::CheckSchedule(*schedule), "") << schedule->name() << " of " << members << ", " << bytes << " bytes";
  }
  EXPECT_EQ(made, 1500);
}

TEST(PlanSpecTest, SharesFollowWhatMembersCanCarry) {
  const auto sum = [](const PlanSpec& spec) { return std::accumulate(spec.parts.begin(), spec.parts.end(), uint64_t{0}); };
  const PlanSpec even = PlanFor({5, 5, 5, 5}, 65'536);
  EXPECT_EQ(even.parts, (std::vector<uint32_t>{kHalf / 2, kHalf / 2, kHalf / 2, kHalf / 2}));
  // Four members, one of which has lost one of four rails: T = 2 * 3 / 3.75, shares proportional to T B - 1.
  const PlanSpec one_lost = PlanFor({3, 4, 4, 4}, 65'536);
  EXPECT_NEAR(one_lost.parts[0], (1.6 * 0.75 - 1) / 2 * PlanSpec::kWhole, 2);
  EXPECT_NEAR(one_lost.parts[1], (1.6 - 1) / 2 * PlanSpec::kWhole, 2);
  // Half of the rails: it owns nothing.
  EXPECT_EQ(PlanFor({2, 4, 4, 4}, 65'536).parts[0], 0u);

  std::mt19937_64 random(2);
  for (int i = 0; i < 2000; ++i) {
    std::vector<uint64_t> rates(2 + random() % 60);
    for (uint64_t& rate : rates) rate = random() % 4 == 0 ? 0 : random() >> (random() % 64);
    const PlanSpec spec = PlanFor(rates, random() % 1'000'000);
    ASSERT_EQ(sum(spec), PlanSpec::kWhole);
    ASSERT_EQ(CheckPlanSpec(spec, static_cast<uint32_t>(rates.size())), "");
  }
}

}  // namespace
}  // namespace r2cc::collnet
