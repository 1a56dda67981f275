#include "tests/figures/serving.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace r2cc::figures {
namespace {

constexpr ServingJob kJob{.parameters = 1e9,
                          .layers = 10,
                          .hidden = 1000,
                          .kv_heads = 4,
                          .head_size = 100,
                          .tensor_parallel = 8,
                          .stages = 2,
                          .prompt_tokens = 1000,
                          .output_tokens = 101,
                          .batch = 16,
                          .flops_per_s = 1e12,
                          .memory_bytes_per_s = 1e10};

TEST(Serving, PipelineParallelTraffic) {
  const ServingTraffic traffic = TrafficOf(kJob);
  EXPECT_DOUBLE_EQ(traffic.prefill_hops, 1);
  EXPECT_DOUBLE_EQ(traffic.prefill_bytes, 2e6);
  EXPECT_DOUBLE_EQ(traffic.decode_bytes, 32e3);
  EXPECT_DOUBLE_EQ(traffic.cache_bytes, 0);
}

TEST(Serving, TheCacheCrossesWherePrefillIsSeparate) {
  ServingJob job = kJob;
  job.stages = 1;
  job.separate_prefill = true;
  EXPECT_DOUBLE_EQ(TrafficOf(job).cache_bytes, 2.0 * 10 * 4 * 100 * 2 * 1000 / 8);
  EXPECT_DOUBLE_EQ(TrafficOf(job).prefill_hops, 0);
}

TEST(Serving, ARequestIsItsFirstTokenAndTheOthers) {
  const ServingSeconds seconds = Serve(kJob, [](double bytes) { return bytes / 1e6; });
  EXPECT_DOUBLE_EQ(seconds.first_token, 0.25 + 2);
  EXPECT_DOUBLE_EQ(seconds.per_output_token, 0.025 + 0.032);
  EXPECT_DOUBLE_EQ(seconds.request, 2.25 + 100 * 0.057);
}

// The formula against the queue that it comes from, request by request.
TEST(Serving, MeanWaitIsThatOfAQueue) {
  constexpr double kWindowS = 600, kOutageS = 40, kUtilisation = 0.75, kServiceS = 0.003;
  const double between_s = kServiceS / kUtilisation;
  double free_at_s = kOutageS, waited_s = 0;
  int requests = 0;
  for (double now_s = 0; now_s < kWindowS; now_s += between_s, ++requests) {
    const double start_s = std::max(now_s, free_at_s);
    waited_s += start_s - now_s;
    free_at_s = start_s + kServiceS;
  }
  EXPECT_NEAR(MeanWaitSeconds(kOutageS, kWindowS, kUtilisation), waited_s / requests, 0.002);
}

}  // namespace
}  // namespace r2cc::figures
