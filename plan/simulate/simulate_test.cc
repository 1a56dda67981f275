// The simulator against what can be worked out by hand, and against itself: with and without the rotation.
#include "plan/simulate/simulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "plan/schedule/check.h"
#include "plan/schedule/cost.h"
#include "plan/schedule/generators.h"
#include "plan/schedule/test_schedules.h"

namespace r2cc::plan {
namespace {

using testing::HasSubstr;

constexpr uint64_t kBytes = uint64_t{1} << 30;
constexpr double kRate = 50e9;

double TimeOf(const Schedule& schedule, const FabricModel& fabric, const SimulateOptions& options = {}) {
  const SimulateResult result = Simulate(schedule, fabric, options);
  EXPECT_EQ(result.error, "") << schedule.name();
  return result.time_s;
}

std::vector<double> OneSlow(uint32_t members, double kept) {
  std::vector<double> ports(members, kRate);
  ports[members / 3] *= kept;
  return ports;
}

FabricModel Rails(uint32_t servers, uint32_t rails, double rail_rate) {
  FabricModel fabric;
  fabric.rails_bytes_per_s.assign(servers, std::vector<double>(rails, rail_rate));
  return fabric;
}

TEST(SimulateTest, ARingTakesTheTimeOfItsFormula) {
  for (const uint32_t members : {2, 3, 8, 17}) {
    for (const double kept : {1.0, 0.5}) {
      const std::vector<double> ports = OneSlow(members, kept);
      for (const double latency_s : {0.0, 5e-6})
        EXPECT_NEAR(TimeOf(*MakeRing(members, kBytes), PortFabric(ports, latency_s)) / RingTime(kBytes, ports, latency_s), 1, 1e-6);
    }
  }
}

TEST(SimulateTest, EachStepCountsItsUseOfItsPorts) {
  FabricModel fabric = PortFabric(OneSlow(8, 0.5));
  fabric.step_overhead_bytes = 1e6;
  EXPECT_NEAR(TimeOf(*MakeRing(8, kBytes), fabric), RingTime(kBytes, OneSlow(8, 0.5), 0, 1e6), 1e-9);
}

TEST(SimulateTest, TheRotationGivesTheSameTimes) {
  for (const uint32_t members : {4, 7, 16, 33}) {
    for (const double kept : {1.0, 7.0 / 8, 3.0 / 4, 0.5, 0.25}) {
      const std::vector<double> ports = OneSlow(members, kept);
      // Equal pieces wherever there are equal shares: only the full simulation sees that some are longer by an element.
      const uint64_t bytes = uint64_t{members} * (members - 1) * 4 * 5 * 7 * (1 << 20);
      std::vector<std::unique_ptr<Schedule>> schedules;
      for (const uint32_t k : {1, 4, 7}) schedules.push_back(MakeDirect(Collective::kAllReduce, bytes, k, DirectShares(ports), ports));
      if (kept <= 0.5) schedules.push_back(MakeOptcc(members, bytes, members / 3, kept, 5));
      if (kept == 1) schedules.push_back(MakeRing(members, bytes));
      for (const double latency_s : {0.0, 5e-6}) {
        for (const auto& schedule : schedules) {
          const FabricModel fabric = PortFabric(ports, latency_s);
          const double full = TimeOf(*schedule, fabric);
          const double reduced = TimeOf(*schedule, fabric, {.use_rotation = true});
          EXPECT_NEAR(reduced / full, 1, 1e-5) << schedule->name() << " p=" << members << " b=" << kept << " latency " << latency_s;
        }
      }
    }
  }
}

TEST(SimulateTest, TheRotationServesSeveralSlowMembers) {
  std::vector<double> ports(20, kRate);
  ports[2] *= 0.5;
  ports[9] *= 0.75;
  ports[10] *= 0.25;
  const auto schedule = MakeDirect(Collective::kAllReduce, kBytes, 4, DirectShares(ports), ports);
  EXPECT_EQ(schedule->Rotation().size(), 17U);
  const FabricModel fabric = PortFabric(ports);
  EXPECT_NEAR(TimeOf(*schedule, fabric, {.use_rotation = true}) / TimeOf(*schedule, fabric), 1, 1e-5);
}

TEST(SimulateTest, RefusesARotationThatIsNone) {
  std::vector<double> ports = OneSlow(6, 0.5);
  const SimulateOptions rotation{.use_rotation = true};
  EXPECT_THAT(Simulate(*MakeRing(6, kBytes), PortFabric(ports), rotation).error, HasSubstr("unequal ports"));
  EXPECT_THAT(Simulate(*MakeR2ccAllReduce(6, kBytes, {2}, 0.5, 0.5, 4), PortFabric(ports), rotation).error, HasSubstr("no rotation"));
  EXPECT_THAT(Simulate(*MakeRing(5, kBytes), PortFabric(ports)).error, HasSubstr("5 members, the fabric has room for 6"));
}

// ReduceScatter and AllGather, by a ring and straight: half an AllReduce. With shares that suit the ports, straight ones are faster.
TEST(SimulateTest, HalvesTakeHalf) {
  const std::vector<double> ports = OneSlow(8, 0.75);
  const std::vector<double> even(8, 1);
  for (const Collective half : {Collective::kReduceScatter, Collective::kAllGather}) {
    const double expected = HalfTime(kBytes, ports);
    EXPECT_NEAR(TimeOf(*MakeRingHalf(half, kBytes, even), PortFabric(ports)) / expected, 1, 1e-6);
    EXPECT_NEAR(TimeOf(*MakeDirect(half, kBytes, 1, even), PortFabric(ports)) / expected, 1, 1e-6);
    const std::vector<double> shares = DirectShares(ports);
    // The slow member sends or receives (1-w)D, the larger of its two loads.
    const double slow = *std::min_element(shares.begin(), shares.end());
    EXPECT_NEAR(TimeOf(*MakeDirect(half, kBytes, 1, shares), PortFabric(ports)), (1 - slow) * kBytes / (0.75 * kRate), 1e-6);
  }
}

// One of 8 rails dies at one server. Shared rails lose an eighth; a pinned channel moves to a rail that has one of its own.
TEST(SimulateTest, PooledRailsLoseAPartPinnedOnesHalf) {
  FabricModel fabric = Rails(4, 8, kRate / 8);
  const double healthy = FaultFreeRingTime(4, kBytes, kRate);
  fabric.rails_bytes_per_s[1][5] = 0;
  EXPECT_NEAR(TimeOf(*MakeRing(4, kBytes), fabric) / healthy, 8.0 / 7, 1e-5);
  fabric.use = RailSharing::kPinned;
  EXPECT_NEAR(TimeOf(*MakeRing(4, kBytes, {}, 8), fabric) / healthy, 2, 1e-5);
}

// Rail k reaches only rail k: neighbours that lost different rails share 6 of 8, and one between them brings that to 7.
TEST(SimulateTest, ReRankingWidensARailOnlyRing) {
  FabricModel fabric = Rails(5, 8, kRate / 8);
  fabric.reach = RailReach::kRailOnly;
  fabric.rails_bytes_per_s[1][0] = 0;
  fabric.rails_bytes_per_s[2][1] = 0;
  const double healthy = FaultFreeRingTime(5, kBytes, kRate);
  EXPECT_NEAR(TimeOf(*MakeRing(5, kBytes), fabric) / healthy, 8.0 / 6, 1e-5);
  const std::vector<uint32_t> order = RerankRing(std::vector<uint64_t>{0xff, 0xfe, 0xfd, 0xff, 0xff});
  EXPECT_NEAR(TimeOf(*MakeRing(5, kBytes, order), fabric) / healthy, 8.0 / 7, 1e-5);
}

// Bytes inside a server go over NVLink, and so do bytes that leave it by another member's rail.
TEST(SimulateTest, MembersOfAServerUseNvlink) {
  FabricModel fabric = Rails(2, 4, kRate);
  fabric.members_per_server = 4;
  fabric.nvlink_bytes_per_s = 8 * kRate;
  std::vector<uint32_t> order(8);
  std::iota(order.begin(), order.end(), 0);
  // One edge of the ring crosses each way, over all four rails; three quarters of its bytes pass NVLink first.
  EXPECT_NEAR(TimeOf(*MakeRing(8, kBytes, order), fabric) / FaultFreeRingTime(8, kBytes, 4 * kRate), 1, 1e-5);
  fabric.nvlink_bytes_per_s = kRate / 2;
  EXPECT_NEAR(TimeOf(*MakeRing(8, kBytes, order), fabric) / FaultFreeRingTime(8, kBytes, kRate / 2), 1, 1e-5);
}

TEST(SimulateTest, CountsWhatEachServerReceives) {
  FabricModel fabric = Rails(3, 3, kRate / 3);
  fabric.members_per_server = 2;
  const SimulateResult result = Simulate(*MakeRing(6, kBytes), fabric);
  for (const double bytes : result.received_bytes) EXPECT_NEAR(bytes / kBytes, 2.0 * 5 / 6, 1e-6);
  // Wang et al.'s testbed: a third of one server's bandwidth is lost. Others receive (1-Y) 10/6 + Y (6/4 + 1), the hit one
  // (1-Y) 10/6 + Y.
  fabric.rails_bytes_per_s[0][2] = 0;
  const auto schedule = MakeR2ccAllReduce(6, kBytes, {0, 1}, 1.0 / 3, 1.0 / 3, 8);
  const SimulateResult hit = Simulate(*schedule, fabric);
  EXPECT_NEAR(hit.received_bytes[0] / kBytes, 2.0 / 3 * 10 / 6 + 1.0 / 3, 1e-4);
  EXPECT_NEAR(hit.received_bytes[1] / kBytes, 2.0 / 3 * 10 / 6 + 1.0 / 3 * 2.5, 1e-4);
  EXPECT_NEAR(hit.time_s / R2ccAllReduceTime(6, kBytes, kRate, 1.0 / 3, 1.0 / 3, 8, 0, 2), 1, 0.02);
}

// Half way through a ring of two, one member's only rail falls to half, later to nothing, and comes back.
TEST(SimulateTest, RailsChangeWhileItRuns) {
  const FabricModel fabric = PortFabric(std::vector<double>{kRate, kRate});
  const double whole = TimeOf(*MakeRing(2, kBytes), fabric);
  const RailChange changes[] = {{whole / 2, 0, 0, kRate / 2}, {whole, 0, 0, 0}, {whole * 3, 0, 0, kRate}};
  // Half at full speed, a quarter at half of it, then nothing for twice as long, then the last quarter.
  EXPECT_NEAR(TimeOf(*MakeRing(2, kBytes), fabric, {.changes = changes}) / whole, 3.25, 1e-6);
}

TEST(SimulateTest, SeveralFailuresOneAfterTheOther) {
  FabricModel fabric = Rails(4, 8, kRate / 8);
  const double whole = TimeOf(*MakeRing(4, kBytes), fabric);
  const RailChange changes[] = {{0, 1, 0, 0}, {whole * 8 / 7 / 2, 2, 3, 0}, {whole * 8 / 7 / 2, 1, 4, 0}};
  // Half of it with 7 of 8 rails at the narrowest server, half with 6.
  EXPECT_NEAR(TimeOf(*MakeRing(4, kBytes), fabric, {.changes = changes}) / whole, 0.5 * 8 / 7 + 0.5 * 8 / 6, 0.01);
}

TEST(SimulateTest, ReportsThatItCannotEnd) {
  FabricModel fabric = PortFabric(OneSlow(4, 0));
  EXPECT_THAT(Simulate(*MakeRing(4, kBytes), fabric).error, HasSubstr("no working rail joins server 0 and server 1"));
  ListedSchedule endless(2, 1);
  endless.Add(0, 1, 0, {.after_receives = 1}, {.kind = StepKind::kReceiveReduce});
  EXPECT_THAT(Simulate(endless, PortFabric(std::vector<double>{1, 1})).error, HasSubstr("for ever"));
  const RailChange nowhere[] = {{0, 9, 0, 0}};
  EXPECT_THAT(Simulate(*MakeRing(4, kBytes), fabric, {.changes = nowhere}).error, HasSubstr("no rail 0 at server 9"));
}

// Each block is added up along one random tree and the sum goes down another, on random lanes.
ListedSchedule RandomSchedule(std::mt19937_64& random) {
  const auto members = static_cast<uint32_t>(2 + random() % 9);
  const auto blocks = static_cast<uint32_t>(1 + random() % 6);
  const auto lanes = static_cast<uint32_t>(1 + random() % (2 * blocks));
  ListedSchedule schedule(members, blocks);
  for (uint32_t block = 0; block < blocks; ++block) {
    std::vector<uint32_t> order(members);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    std::vector<uint32_t> up(members), children(members, 0);
    for (uint32_t i = 1; i < members; ++i) ++children[order[up[i] = static_cast<uint32_t>(random() % i)]];
    const auto up_lane = static_cast<uint32_t>(random() % lanes);
    const auto down_lane = static_cast<uint32_t>(random() % lanes);
    for (uint32_t i = members - 1; i > 0; --i)
      schedule.Add(order[i], order[up[i]], up_lane, {.block = block, .after_receives = children[order[i]]},
                   {.kind = StepKind::kReceiveReduce});
    for (uint32_t i = 1; i < members; ++i) {
      const auto from = static_cast<uint32_t>(random() % i);
      schedule.Add(order[from], order[i], down_lane, {.block = block, .after_receives = children[order[from]] + (from > 0)},
                   {.kind = StepKind::kReceive, .after_receives = children[order[i]], .after_sends = 1});
    }
  }
  return schedule;
}

TEST(SimulateTest, RunsTwoHundredRandomSchedulesThatTheCheckerApproves) {
  std::mt19937_64 random(17);
  for (int round = 0; round < 200; ++round) {
    const ListedSchedule schedule = RandomSchedule(random);
    ASSERT_EQ(CheckSchedule(schedule), "");
    std::vector<double> ports(schedule.members());
    for (double& port : ports) port = kRate / static_cast<double>(1 + random() % 4);
    const double latency_s = random() % 2 == 0 ? 0 : 1e-6;
    const SimulateResult result = Simulate(schedule, PortFabric(ports, latency_s));
    ASSERT_EQ(result.error, "");
    const double bytes = 64.0 * schedule.blocks();
    EXPECT_EQ(result.transfers, uint64_t{2} * schedule.blocks() * (schedule.members() - 1));
    EXPECT_GE(result.time_s, LowerBoundTime(bytes, ports) * (1 - 1e-9));
    EXPECT_NEAR(std::accumulate(result.received_bytes.begin(), result.received_bytes.end(), 0.0), 2 * bytes * (schedule.members() - 1),
                1e-3);
  }
}

TEST(SimulateTest, TracesEachTransfer) {
  uint64_t seen = 0;
  double last = 0;
  const auto trace = [&](const TransferTrace& transfer) {
    ++seen;
    EXPECT_LT(transfer.begin_s, transfer.end_s);
    last = transfer.end_s;
  };
  const FunctionRef<void(const TransferTrace&)> traced(trace);
  const double time = TimeOf(*MakeRing(4, kBytes), PortFabric(OneSlow(4, 0.5)), {.trace = &traced});
  EXPECT_EQ(seen, 24U);
  EXPECT_DOUBLE_EQ(last, time);
}

}  // namespace
}  // namespace r2cc::plan
