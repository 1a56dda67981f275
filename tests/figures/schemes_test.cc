#include "tests/figures/schemes.h"

#include <gtest/gtest.h>

#include "plan/schedule/cost.h"

namespace r2cc::figures {
namespace {

constexpr double kBytes = 10e9;

double Ratio(const Cluster& cluster, Scheme scheme, const Lost& lost) {
  return ServerAllReduceSeconds(cluster, scheme, kBytes, lost) /
         ServerAllReduceSeconds(cluster, Scheme::kBalance, kBytes, Lost(cluster.servers, 0));
}

TEST(Schemes, OneRailOfEight) {
  const Cluster cluster{.servers = 64, .step_latency_s = 0, .message_s = 0};
  Lost lost(64, 0);
  lost[5] = 1;
  EXPECT_NEAR(Ratio(cluster, Scheme::kMigration, lost), 2, 1e-6);
  EXPECT_NEAR(Ratio(cluster, Scheme::kBalance, lost), 8.0 / 7, 1e-6);
  EXPECT_NEAR(Ratio(cluster, Scheme::kR2cc, lost), 1.0726, 0.004);
  EXPECT_LT(Ratio(cluster, Scheme::kOurs, lost), 1.0020 * 33 / 32 + 1e-4);
}

TEST(Schemes, NoSchemeIsSlowerThanTheSimplerOne) {
  const Cluster cluster{.servers = 16};
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Lost lost = LoseNics(1 + static_cast<int>(seed % 10), cluster.servers, cluster.rails, seed);
    double simpler_s = 1e9;
    for (const Scheme scheme : kSchemes) {
      const double now_s = ServerAllReduceSeconds(cluster, scheme, kBytes, lost);
      EXPECT_LE(now_s, simpler_s * (1 + 1e-12)) << SchemeName(scheme) << " seed " << seed;
      simpler_s = now_s;
    }
  }
}

TEST(Schemes, AFlatRingCountsGpus) {
  const Cluster cluster{.servers = 2};
  const double ring_s = plan::FaultFreeRingTime(16, kBytes, cluster.server_bytes_per_s());
  EXPECT_DOUBLE_EQ(FlatAllReduceSeconds(cluster, 16, Scheme::kBalance, kBytes, {0, 0}), ring_s);
  EXPECT_NEAR(FlatAllReduceSeconds(cluster, 16, Scheme::kMigration, kBytes, {0, 1}) / ring_s, 2, 1e-12);
  EXPECT_NEAR(FlatAllReduceSeconds(cluster, 16, Scheme::kBalance, kBytes, {0, 1}) / ring_s, 8.0 / 7, 1e-12);
  EXPECT_NEAR(FlatAllReduceSeconds(cluster, 16, Scheme::kR2cc, kBytes, {0, 1}) / ring_s, 1.0762, 1e-4);
  EXPECT_NEAR(FlatAllReduceSeconds(cluster, 16, Scheme::kR2cc, kBytes, {1, 1}) / ring_s, 8.0 / 7, 1e-12);
}

TEST(Schemes, ATransferPaysForTheRailThatItShares) {
  const Cluster cluster{.servers = 2, .step_latency_s = 1};
  EXPECT_DOUBLE_EQ(TransferSeconds(cluster, Scheme::kOurs, 50e9, 0), 2);
  EXPECT_DOUBLE_EQ(TransferSeconds(cluster, Scheme::kMigration, 50e9, 0), 2);
  EXPECT_DOUBLE_EQ(TransferSeconds(cluster, Scheme::kMigration, 50e9, 1), 3);
  EXPECT_DOUBLE_EQ(TransferSeconds(cluster, Scheme::kMigration, 50e9, 5), 4);  // five lost ones on three that are left
  EXPECT_DOUBLE_EQ(TransferSeconds(cluster, Scheme::kBalance, 50e9, 1), 1 + 8.0 / 7);
}

}  // namespace
}  // namespace r2cc::figures
