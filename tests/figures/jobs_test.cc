#include "tests/figures/jobs.h"

#include <gtest/gtest.h>

#include "plan/schedule/cost.h"

namespace r2cc::figures {
namespace {

TEST(Jobs, GradientsOfAllGpusGoOnceThroughTheRing) {
  const TrainingJob job = Job2700M(2);
  const Cluster cluster{.servers = 2};
  const double ring_s = plan::FaultFreeRingTime(16, 2.7e9 * 4, cluster.server_bytes_per_s());
  EXPECT_DOUBLE_EQ(TimesOf(job, cluster, Scheme::kBalance, true, {0, 0}).gradient, ring_s);
  EXPECT_DOUBLE_EQ(TimesOf(job, cluster, Scheme::kBalance, true, {1, 0}).gradient, ring_s * 8 / 7);
}

TEST(Jobs, TheSlowerOfServerAndRailsSetsThePace) {
  const TrainingJob job = Job2700M(2);
  const Cluster fast{.servers = 2};
  EXPECT_DOUBLE_EQ(TimesOf(job, fast, Scheme::kOurs, false, {0, 0}).gradient, InsideServerSeconds(8, 2.7e9 * 4));
  const Cluster slow{.servers = 2, .rail_bytes_per_s = 1e9};
  EXPECT_DOUBLE_EQ(TimesOf(job, slow, Scheme::kOurs, false, {0, 0}).gradient,
                   ServerAllReduceSeconds(slow, Scheme::kOurs, 2.7e9 * 4, {0, 0}));
}

TEST(Jobs, TensorParallelGroupsSendTheirPartsOverTheirOwnRails) {
  const TrainingJob job = Job13BData(512);
  EXPECT_EQ(job.data_parallel(), 64);
  const Cluster cluster{.servers = 64};
  const TrafficSeconds seconds = TimesOf(job, cluster, Scheme::kBalance, false, Lost(64, 0));
  EXPECT_NEAR(seconds.gradient, plan::FaultFreeRingTime(64, 13e9 / 8 * 4, cluster.rail_bytes_per_s), 0.001);
  EXPECT_GT(seconds.tensor, 0);
  EXPECT_EQ(seconds.stage, 0);
}

TEST(Jobs, StagesSendOverOneRailEach) {
  const TrainingJob job = Job13BPipeline();
  EXPECT_EQ(job.data_parallel(), 1);
  const Cluster cluster{.servers = 2, .step_latency_s = 0};
  const TrafficSeconds seconds = TimesOf(job, cluster, Scheme::kMigration, false, {1, 0});
  EXPECT_DOUBLE_EQ(seconds.stage, 2 * 2048 * 5120 * 2 / 50e9);
  EXPECT_EQ(seconds.gradient, 0);
}

// The published healthy run comes out of the model that was calibrated on it, and a job of twice the work takes twice the compute.
TEST(Jobs, ComputeIsScaledFromThePublishedHealthyRun) {
  const TrainingJob job = Job2700M(4);
  const double compute_s = ScaledComputeSeconds(job);
  const TrafficSeconds healthy = TimesOf(job, {.servers = 4}, Scheme::kBalance, true, Lost(4, 0));
  EXPECT_NEAR(job.batch_tokens / IterationSeconds(job, compute_s, healthy), kHealthy2700M4x8TokensPerS, 1e-3);
  TrainingJob twice = job;
  twice.model.parameters *= 2;
  EXPECT_DOUBLE_EQ(ScaledComputeSeconds(twice), 2 * compute_s);
}

}  // namespace
}  // namespace r2cc::figures
