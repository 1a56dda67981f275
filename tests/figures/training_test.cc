#include "tests/figures/training.h"

#include <gtest/gtest.h>

namespace r2cc::figures {
namespace {

constexpr Model kModel{.parameters = 1e9, .layers = 10, .hidden = 1000, .sequence_tokens = 1000, .vocabulary = 50000};

TEST(Training, DataParallelTrafficIsItsGradients) {
  const TrainingJob job{.model = kModel, .servers = 2, .batch_tokens = 16000};
  const Traffic traffic = TrafficOf(job);
  EXPECT_EQ(job.data_parallel(), 16);
  EXPECT_EQ(traffic.slots, 1);
  EXPECT_DOUBLE_EQ(traffic.gradient_bytes, 4e9);
  EXPECT_DOUBLE_EQ(traffic.tensor_bytes + traffic.stage_bytes + traffic.embedding_bytes, 0);
}

TEST(Training, TensorAndPipelineParallelTraffic) {
  const TrainingJob job{.model = kModel, .servers = 2, .tensor_parallel = 8, .pipeline_stages = 2, .batch_tokens = 16000};
  const Traffic traffic = TrafficOf(job);
  EXPECT_EQ(job.data_parallel(), 1);
  EXPECT_EQ(traffic.slots, 16 + 1);
  EXPECT_DOUBLE_EQ(traffic.stage_bytes, 1000.0 * 1000 * 2);
  EXPECT_DOUBLE_EQ(traffic.tensor_bytes, 4 * 5 * traffic.stage_bytes);
  EXPECT_DOUBLE_EQ(traffic.gradient_bytes, 0);
  EXPECT_DOUBLE_EQ(traffic.embedding_bytes, 50000.0 * 1000 / 8 * 4);
}

TEST(Training, AnIterationIsTheSumOfItsParts) {
  const TrainingJob job{.model = kModel, .servers = 2, .tensor_parallel = 8, .pipeline_stages = 2, .batch_tokens = 16000};
  EXPECT_DOUBLE_EQ(IterationSeconds(job, 1, {.tensor = 0.5, .stage = 0.25, .gradient = 3, .embedding = 0.125}), 17 * 2 + 3 + 0.125);
}

TEST(Training, GradientsHideBehindTheBackwardPassOnly) {
  TrainingJob job{.model = kModel, .servers = 2, .batch_tokens = 16000, .overlap = 1};
  EXPECT_DOUBLE_EQ(IterationSeconds(job, 3, {.gradient = 1.5}), 3);
  EXPECT_DOUBLE_EQ(IterationSeconds(job, 3, {.gradient = 2.5}), 3.5);
  job.overlap = 0.5;
  EXPECT_DOUBLE_EQ(IterationSeconds(job, 3, {.gradient = 1.5}), 3.5);
}

TEST(Training, CalibrationIsTheInverse) {
  for (const double overlap : {0.0, 0.5, 1.0}) {
    for (const double gradient_s : {0.0, 0.5, 2.0, 20.0}) {
      const TrainingJob job{
          .model = kModel, .servers = 4, .tensor_parallel = 8, .pipeline_stages = 2, .batch_tokens = 16000, .overlap = overlap};
      const TrafficSeconds healthy{.tensor = 0.5, .stage = 0.25, .gradient = gradient_s, .embedding = 0.125};
      const double iteration_s = IterationSeconds(job, 1.75, healthy);
      EXPECT_NEAR(CalibratedComputeSeconds(job, job.batch_tokens / iteration_s, healthy), 1.75, 1e-9) << overlap << ' ' << gradient_s;
    }
  }
}

TEST(Training, CalibrationShowsThatTheTrafficAloneTakesLonger) {
  const TrainingJob job{.model = kModel, .servers = 2, .batch_tokens = 16000};
  EXPECT_LT(CalibratedComputeSeconds(job, 16000, {.gradient = 2}), 0);
}

}  // namespace
}  // namespace r2cc::figures
