#include "plan/schedule/cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace r2cc::plan {
namespace {

std::vector<double> OneSlow(uint32_t members, double kept) {
  std::vector<double> ports(members, 1);
  ports[members - 1] = kept;
  return ports;
}

// T / T0 as the papers' formulas give it, to four digits: bound, R2CC-AllReduce (Y = X, K without end), Balance; X = 1/8, 1/4, 1/2, 3/4.
struct Row {
  uint32_t members;
  double bound[4], r2cc[4];
};
constexpr double kLost[4] = {1.0 / 8, 1.0 / 4, 1.0 / 2, 3.0 / 4};
constexpr double kBalance[4] = {1.1429, 1.3333, 2, 4};
constexpr Row kRows[] = {
    {3, {1.0435, 1.0909, 1.5000, 3.0000}, {1.1071, 1.2500, 1.7500, 3.2500}},
    {4, {1.0323, 1.0667, 1.3333, 2.6667}, {1.0952, 1.2222, 1.6667, 3.0000}},
    {5, {1.0256, 1.0526, 1.2500, 2.5000}, {1.0893, 1.2083, 1.6250, 2.8750}},
    {8, {1.0159, 1.0323, 1.1429, 2.2857}, {1.0816, 1.1905, 1.5714, 2.7143}},
    {16, {1.0079, 1.0159, 1.0667, 2.1333}, {1.0762, 1.1778, 1.5333, 2.6000}},
    {64, {1.0020, 1.0039, 1.0159, 2.0317}, {1.0726, 1.1693, 1.5079, 2.5238}},
    {1024, {1.0001, 1.0002, 1.0010, 2.0020}, {1.0715, 1.1668, 1.5005, 2.5015}},
};

TEST(CostTest, GivesThePapersTable) {
  for (const Row& row : kRows) {
    const double healthy = FaultFreeRingTime(row.members, 1, 1);
    for (int i = 0; i < 4; ++i) {
      SCOPED_TRACE("p = " + std::to_string(row.members) + ", X = " + std::to_string(kLost[i]));
      const std::vector<double> ports = OneSlow(row.members, 1 - kLost[i]);
      EXPECT_NEAR(LowerBoundTime(1, ports) / healthy, row.bound[i], 6e-5);
      EXPECT_NEAR(R2ccAllReduceTime(row.members, 1, 1, kLost[i], kLost[i], 0) / healthy, row.r2cc[i], 6e-5);
      EXPECT_NEAR(RingTime(1, ports) / healthy, kBalance[i], 6e-5);
      EXPECT_NEAR(RecursiveTime(1, ports, 0) / healthy, row.r2cc[i], 6e-5);
    }
  }
}

TEST(CostTest, TheBestYEndsBothRingsTogether) {
  for (const uint32_t members : {3, 8, 100}) {
    for (const double lost : kLost) {
      const double y = R2ccOptimalY(members, lost);
      const double p = members;
      EXPECT_NEAR(y, (p - 1) * (p - 1) * lost / (p * (p - 2) + lost), 1e-12);
      const double best = R2ccAllReduceTime(members, 1, 1, lost, y, 0);
      // More of it only pays where what the exchange costs is less than what the ring saves.
      EXPECT_LT(best, R2ccAllReduceTime(members, 1, 1, lost, y * 1.01, 0));
    }
  }
}

TEST(CostTest, OneChunkIsSlowerThanBalance) {
  for (const double lost : kLost) EXPECT_GT(R2ccAllReduceTime(8, 1, 1, lost, lost, 1), RingTime(1, OneSlow(8, 1 - lost)));
}

TEST(CostTest, TheStagedPartIsWholeUpToTheCrossing) {
  for (const uint32_t members : {3, 8, 64}) {
    const double crossing = (members - 1.0) / (2.0 * members - 3);
    EXPECT_EQ(OptccStagedPart(members, crossing), 1);
    EXPECT_NEAR(OptccStagedPart(members, crossing + 1e-9), 1, 1e-6);
    EXPECT_NEAR(OptccStagedPart(members, 1), 0, 1e-12);
    EXPECT_LT(OptccStagedPart(members, 0.9), OptccStagedPart(members, 0.8));
  }
}

// For any bandwidths: shares that are not negative and make up one, and no port that needs longer than the bound.
TEST(CostTest, DirectSharesMeetTheBound) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 2000; ++round) {
    std::vector<double> ports(2 + random() % 30);
    for (double& port : ports) port = static_cast<double>(1 + random() % 8) / 8;
    const std::vector<double> shares = DirectShares(ports);
    EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 1, 1e-9);
    for (size_t i = 0; i < ports.size(); ++i) {
      EXPECT_GE(shares[i], 0);
      EXPECT_LE((1 + (static_cast<double>(ports.size()) - 2) * shares[i]) / ports[i], LowerBoundTime(1, ports) * (1 + 1e-9));
    }
    for (const uint32_t k : {1, 5, 32}) EXPECT_LE(DirectTime(1, ports, k), (k + 1.0) / k * LowerBoundTime(1, ports) * (1 + 1e-9));
  }
}

TEST(CostTest, SharesOfThoseThatMayOwnMakeUpForTheOthers) {
  EXPECT_EQ(DirectShares(std::vector<double>{1, 1}, {true, false}), (std::vector<double>{1, 0}));
  // Two of four have half of their rails: what they move is what the bound's first term asks for, and the others take as long.
  const std::vector<double> ports = {0.5, 0.5, 1, 1};
  const std::vector<double> shares = DirectShares(ports, {false, false, true, true});
  EXPECT_EQ(shares, (std::vector<double>{0, 0, 0.5, 0.5}));
  for (size_t i = 0; i < ports.size(); ++i) EXPECT_DOUBLE_EQ((1 + 2 * shares[i]) / ports[i], LowerBoundTime(1, ports));
  // Owners that differ finish together.
  const std::vector<double> uneven = DirectShares(std::vector<double>{1, 1, 0.75, 0.75}, {false, true, true, false});
  EXPECT_DOUBLE_EQ((1 + 2 * uneven[1]) / 1, (1 + 2 * uneven[2]) / 0.75);
  EXPECT_DOUBLE_EQ(uneven[1] + uneven[2], 1);
}

TEST(CostTest, NothingIsFasterThanTheBound) {
  for (const Row& row : kRows) {
    for (const double lost : kLost) {
      const std::vector<double> ports = OneSlow(row.members, 1 - lost);
      const double bound = LowerBoundTime(1, ports) * (1 - 1e-9);
      EXPECT_GE(RingTime(1, ports), bound);
      EXPECT_GE(R2ccAllReduceTime(row.members, 1, 1, lost, lost, 64), bound);
      EXPECT_GE(OptccTime(row.members, 1, 1, 1 - lost, 32), bound);
      EXPECT_GE(DirectTime(1, ports, 32), bound);
    }
  }
}

}  // namespace
}  // namespace r2cc::plan
