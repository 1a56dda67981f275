// Seed by seed: --seeds=N from --first=S on, --seed=S alone, --fresh=N more that are new each time.
#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "bazel/processor_seconds.h"
#include "tests/observe/run.h"

namespace {

using r2cc::observe::RunResult;

uint64_t first = 0, seeds = 200, fresh = 0;

void One(uint64_t seed, RunResult* sums) {
  const RunResult result = r2cc::observe::RunSeed(seed);
  EXPECT_EQ(result.failure, "") << "--seed=" << seed;
  sums->steps += result.steps;
  sums->records_read += result.records_read;
  sums->dropped_device += result.dropped_device;
  sums->dropped_host += result.dropped_host;
  sums->unwanted += result.unwanted;
  sums->wraps += result.wraps;
  sums->cut_off += result.cut_off;
  sums->lied += result.lied;
  sums->stubs += result.stubs;
  sums->waited += result.waited;
  sums->at_points += result.at_points;
  sums->flat_taps += result.flat_taps;
  sums->failed_copies += result.failed_copies;
}

TEST(Sweep, EverySeed) {
  RunResult sums;
  for (uint64_t seed = first; seed < first + seeds && !HasFailure(); ++seed) One(seed, &sums);
  std::random_device random;
  for (uint64_t i = 0; i < fresh && !HasFailure(); ++i) One(uint64_t{random()} << 20, &sums);
  std::printf("%" PRIu64 " steps, %" PRIu64 " records read; dropped %" PRIu64 " on the device, %" PRIu64 " on the host, %" PRIu64
              " not wanted; %" PRIu64 " wraps, %" PRIu64 " cut off, %" PRIu64 " lies, %" PRIu64 " stubs, %" PRIu64
              " copies at points, %" PRIu64 " failed copies\n",
              sums.steps, sums.records_read, sums.dropped_device, sums.dropped_host, sums.unwanted, sums.wraps, sums.cut_off, sums.lied,
              sums.stubs, sums.at_points, sums.failed_copies);
  if (seeds < 100) return;
  // What never happens is not tested.
  EXPECT_GT(sums.records_read, 10 * seeds);
  EXPECT_GT(sums.dropped_device, seeds);
  EXPECT_GT(sums.dropped_host, seeds / 2);
  EXPECT_GT(sums.unwanted, seeds);
  EXPECT_GT(sums.wraps, seeds);
  EXPECT_GT(sums.cut_off, seeds / 20);
  EXPECT_GT(sums.lied, seeds / 50);
  EXPECT_GT(sums.stubs, seeds);
  EXPECT_GT(sums.at_points, seeds);
  EXPECT_GT(sums.flat_taps, seeds);
  EXPECT_GT(sums.waited, seeds / 20);
  EXPECT_GT(sums.failed_copies, 0U);
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  r2cc::RecordProcessorSeconds();
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto value = [&](const std::string& name, uint64_t* to) {
      if (argument.rfind(name, 0) == 0) *to = std::strtoull(argument.c_str() + name.size(), nullptr, 10);
    };
    value("--first=", &first);
    value("--seeds=", &seeds);
    value("--fresh=", &fresh);
    if (argument.rfind("--seed=", 0) == 0) {
      value("--seed=", &first);
      seeds = 1;
    }
  }
  return RUN_ALL_TESTS();
}
