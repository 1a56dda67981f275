// Every generator's schedules pass the checker: all small worlds, and thousands of large ones.
#include "plan/schedule/generators.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>
#include <set>
#include <utility>

#include "plan/schedule/check.h"
#include "plan/schedule/cost.h"

namespace r2cc::plan {
namespace {

constexpr double kRates[] = {1, 7.0 / 8, 3.0 / 4, 1.0 / 2, 1.0 / 4};

std::string Text(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "" : " ") + std::to_string(value);
  return text;
}

// The one member that is slower than the others, which are equal; -1 if that does not describe `bandwidth`.
int OnlySlowOne(const std::vector<double>& bandwidth) {
  const double most = *std::max_element(bandwidth.begin(), bandwidth.end());
  const auto slow = std::find_if(bandwidth.begin(), bandwidth.end(), [&](double b) { return b < most; });
  if (slow == bandwidth.end() || std::count(bandwidth.begin(), bandwidth.end(), most) + 1 != static_cast<int>(bandwidth.size())) return -1;
  return static_cast<int>(slow - bandwidth.begin());
}

void Check(const Schedule& schedule, uint64_t bytes) {
  ASSERT_EQ(CheckSchedule(schedule), "") << schedule.name();
  ASSERT_EQ(schedule.RangeOf(0, schedule.blocks()), (Range{0, bytes})) << schedule.name();
}

// All schedules that can be made for `bandwidth` with k segments.
void CheckAll(const std::vector<double>& bandwidth, uint64_t bytes, uint32_t k) {
  SCOPED_TRACE(Text(bandwidth) + " bytes " + std::to_string(bytes) + " k " + std::to_string(k));
  const auto members = static_cast<uint32_t>(bandwidth.size());
  const std::vector<double> shares = DirectShares(bandwidth);
  for (const Collective collective : {Collective::kAllReduce, Collective::kReduceScatter, Collective::kAllGather})
    Check(*MakeDirect(collective, bytes, k, shares, bandwidth), bytes);
  Check(*MakeRing(members, bytes, {}, k), bytes);
  Check(*MakeRingHalf(Collective::kReduceScatter, bytes, bandwidth), bytes);
  Check(*MakeRingHalf(Collective::kAllGather, bytes, bandwidth), bytes);
  Check(*MakeRecursive(bandwidth, bytes, k), bytes);
  const int slow = OnlySlowOne(bandwidth);
  if (members < 3 || slow < 0) return;
  const double kept = bandwidth[slow] / bandwidth[slow == 0];
  const auto degraded = static_cast<uint32_t>(slow);
  Check(*MakeOptcc(members, bytes, degraded, kept, k), bytes);
  for (const double y : {1 - kept, R2ccOptimalY(members, 1 - kept)})
    Check(*MakeR2ccAllReduce(members, bytes, {degraded}, 1 - kept, y, k), bytes);
}

// By number of segments.
class SmallWorldsTest : public testing::TestWithParam<uint32_t> {};

TEST_P(SmallWorldsTest, AllOfThem) {
  for (uint32_t members = 2; members <= 5; ++members) {
    const auto worlds = static_cast<uint32_t>(std::pow(std::size(kRates), members));
    for (uint32_t world = 0; world < worlds; ++world) {
      std::vector<double> bandwidth;
      for (uint32_t i = 0, rest = world; i < members; ++i, rest /= std::size(kRates)) bandwidth.push_back(kRates[rest % std::size(kRates)]);
      CheckAll(bandwidth, 1 << 20, GetParam());
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Segments, SmallWorldsTest, testing::Range(1U, 9U));

// Vectors too short to give each member a piece of each segment, and lengths that are no whole number of elements.
TEST(GeneratorsTest, ShortVectors) {
  for (const uint64_t bytes : {0, 1, 16, 17, 100, 4099})
    for (const uint32_t k : {1, 3, 8})
      for (const double slow : {0.25, 0.5, 0.75, 1.0}) CheckAll({1, 1, slow, 1, 1}, bytes, k);
}

// By seed.
class LargeWorldsTest : public testing::TestWithParam<uint32_t> {};

TEST_P(LargeWorldsTest, Hundreds) {
  std::mt19937_64 random(GetParam());
  for (int round = 0; round < 600; ++round) {
    const auto members = static_cast<uint32_t>(6 + random() % (round % 50 == 0 ? 60 : 12));
    std::vector<double> bandwidth(members, 1);
    const uint64_t slow = random() % 4 == 0 ? 1 : random() % members;
    for (uint64_t i = 0; i < slow; ++i) bandwidth[random() % members] = kRates[random() % std::size(kRates)];
    CheckAll(bandwidth, random() % (1 << 22), static_cast<uint32_t>(1 + random() % (members > 20 ? 2 : 6)));
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, LargeWorldsTest, testing::Range(0U, 4U));

TEST(GeneratorsTest, MembersOfOneServerAddUpFirst) {
  for (uint32_t per_server = 1; per_server <= 4; ++per_server) {
    for (uint32_t servers = per_server == 1 ? 3 : 2; servers < 8; ++servers) {
      std::vector<uint32_t> degraded(per_server);
      std::iota(degraded.begin(), degraded.end(), servers / 2 * per_server);
      const auto schedule = MakeR2ccAllReduce(servers * per_server, 1 << 20, degraded, 0.25, 0.25, 3);
      ASSERT_EQ(CheckSchedule(*schedule), "") << servers << " servers of " << per_server;
    }
  }
}

// With direct shares every member moves exactly what the bound's proof allows: D (1 + (p-2) w) each way.
TEST(GeneratorsTest, DirectLoadsPortsByItsShares) {
  const std::vector<double> bandwidth = {1, 0.5, 0.75, 1, 0.25, 1};
  const std::vector<double> shares = DirectShares(bandwidth);
  constexpr uint64_t kBytes = 1 << 26;
  const auto schedule = MakeDirect(Collective::kAllReduce, kBytes, 4, shares);
  for (uint32_t member = 0; member < 6; ++member) {
    uint64_t out = 0;
    uint64_t in = 0;
    for (uint32_t lane = 0; lane < schedule->Lanes(member); ++lane) {
      for (uint32_t i = 0; i < schedule->Sends(member, lane); ++i)
        out += schedule->RangeOf(schedule->Send(member, lane, i).block, 1).bytes();
      for (uint32_t i = 0; i < schedule->Receives(member, lane); ++i)
        in += schedule->RangeOf(schedule->Receive(member, lane, i).block, 1).bytes();
    }
    EXPECT_NEAR(static_cast<double>(out), kBytes * (1 + 4 * shares[member]), 4096);
    EXPECT_NEAR(static_cast<double>(in), kBytes * (1 + 4 * shares[member]), 4096);
  }
}

// Some pairs have no path, and some member has one to all others: those alone own anything, and no step is between such a pair.
TEST(GeneratorsTest, DirectAvoidsPairsWithoutAPath) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 400; ++round) {
    const auto members = static_cast<uint32_t>(3 + random() % 8);
    const auto hub = static_cast<uint32_t>(random() % members);
    std::vector<bool> reaches_all(members, true);
    std::set<std::pair<uint32_t, uint32_t>> parted;
    for (uint32_t pairs = 1 + random() % 4; pairs > 0; --pairs) {
      const auto a = static_cast<uint32_t>(random() % members), b = static_cast<uint32_t>(random() % members);
      if (a == b || a == hub || b == hub) continue;
      parted.insert(std::minmax(a, b));
      reaches_all[a] = reaches_all[b] = false;
    }
    std::vector<double> bandwidth;
    for (uint32_t i = 0; i < members; ++i) bandwidth.push_back(kRates[random() % std::size(kRates)]);
    const uint64_t bytes = random() % 3 == 0 ? random() % 100 : random() % (1 << 20);
    const std::vector<double> shares = DirectShares(bandwidth, reaches_all);
    for (const Collective collective : {Collective::kAllReduce, Collective::kReduceScatter, Collective::kAllGather}) {
      const auto schedule = MakeDirect(collective, bytes, static_cast<uint32_t>(1 + random() % 5), shares);
      Check(*schedule, bytes);
      ASSERT_EQ(CheckPaths(*schedule, [&](uint32_t a, uint32_t b) { return !parted.contains(std::minmax(a, b)); }), "");
    }
  }
}

TEST(GeneratorsTest, EvenPiecesCoverTheVector) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{15}, uint64_t{16}, uint64_t{1000}, uint64_t{1} << 60}) {
    uint64_t end = 0;
    for (uint64_t i = 0; i < 7; ++i) {
      const Range piece = EvenPiece(bytes, i, 7);
      EXPECT_EQ(piece.begin, end);
      EXPECT_EQ(piece.begin % kElementBytes, 0U);
      EXPECT_LE(piece.bytes(), bytes / 7 + 2 * kElementBytes);
      end = piece.end;
    }
    EXPECT_EQ(end, bytes);
  }
}

// The rate that a ring's narrowest neighbours share.
int Narrowest(std::span<const uint64_t> rails, const std::vector<uint32_t>& order) {
  int narrowest = 64;
  for (size_t i = 0; i < order.size(); ++i)
    narrowest = std::min(narrowest, std::popcount(rails[order[i]] & rails[order[(i + 1) % order.size()]]));
  return narrowest;
}

TEST(RerankTest, PutsAMemberWithBothRailsBetween) {
  const std::vector<uint64_t> rails = {0b1111, 0b1110, 0b1101, 0b1111, 0b1111};
  const std::vector<uint32_t> order = RerankRing(rails);
  EXPECT_EQ(Narrowest(rails, order), 3);
  EXPECT_EQ(CheckSchedule(*MakeRing(5, 4096, order)), "");
}

TEST(RerankTest, LeavesAGoodRingAlone) {
  const std::vector<uint64_t> same = {0b0111, 0b0111, 0b1111, 0b1111, 0b0111};
  EXPECT_EQ(RerankRing(same), (std::vector<uint32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(RerankRing(std::vector<uint64_t>{1, 2}), (std::vector<uint32_t>{0, 1}));
}

// Against all orders of small rings.
TEST(RerankTest, FindsTheBestOfSmallRings) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<uint64_t> rails(4 + random() % 4, 0b1111);
    for (uint64_t& mask : rails)
      if (random() % 2 == 0) mask &= ~(uint64_t{1} << random() % 4);
    std::vector<uint32_t> order(rails.size());
    std::iota(order.begin(), order.end(), 0);
    int best = 0;
    do {
      best = std::max(best, Narrowest(rails, order));
    } while (std::next_permutation(order.begin() + 1, order.end()));
    EXPECT_EQ(Narrowest(rails, RerankRing(rails)), best) << round;
  }
}

// 1,024 members, a tenth of which lost a rail: everybody keeps 7 of 8 rails to both neighbours.
TEST(RerankTest, ManyMembers) {
  std::mt19937_64 random(5);
  std::vector<uint64_t> rails(1024, 0xff);
  for (int i = 0; i < 100; ++i) rails[random() % 1024] = 0xff & ~(1U << random() % 8);
  std::vector<uint32_t> order = RerankRing(rails);
  EXPECT_EQ(Narrowest(rails, order), 7);
  std::sort(order.begin(), order.end());
  for (uint32_t i = 0; i < 1024; ++i) ASSERT_EQ(order[i], i);
}

}  // namespace
}  // namespace r2cc::plan
