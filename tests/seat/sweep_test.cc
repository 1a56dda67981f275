// Seed by seed: --seeds=N from --first=S on, --seed=S alone, --fresh=N more that are new each time.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "bazel/processor_seconds.h"
#include "tests/seat/run.h"

namespace {

uint64_t first = 0, seeds = 200, fresh = 0;

struct Sums {
  uint64_t runs = 0, by_children = 0, by_collnet = 0, switches = 0, refusals = 0, differing = 0, unreached = 0, aborts = 0, seated = 0;
};

void One(uint64_t seed, Sums* sums) {
  const r2cc::nccl::RunResult result = r2cc::nccl::RunSeed(seed);
  EXPECT_EQ(result.failure, "") << "--seed=" << seed;
  ++sums->runs;
  sums->by_children += result.by_children;
  sums->by_collnet += result.by_collnet;
  sums->switches += result.switches;
  sums->refusals += result.refusals;
  sums->differing += result.differing;
  sums->unreached += result.unreached;
  sums->aborts += result.aborts;
  sums->seated += result.seated_at_end;
}

TEST(Sweep, EverySeed) {
  Sums sums;
  for (uint64_t seed = first; seed < first + seeds && !HasFailure(); ++seed) One(seed, &sums);
  std::random_device random;
  for (uint64_t i = 0; i < fresh && !HasFailure(); ++i) One(uint64_t{random()} << 20, &sums);
  std::printf(
      "%lu runs: %lu operations by children, %lu by CollNet, %lu switches, %lu refusals, %lu aborts, %lu seated in the "
      "end\n",
      sums.runs, sums.by_children, sums.by_collnet, sums.switches, sums.refusals, sums.aborts, sums.seated);
  if (seeds >= 100) {
    // What never happens is not tested.
    EXPECT_GT(sums.by_children + sums.by_collnet, 8 * seeds);
    EXPECT_GT(sums.by_collnet, seeds);
    EXPECT_GT(sums.switches, seeds / 4);
    EXPECT_GT(sums.refusals, 0U);
    EXPECT_GT(sums.differing, seeds / 50);
    EXPECT_GT(sums.unreached, seeds / 50);
    EXPECT_GT(sums.aborts, seeds / 50);
    EXPECT_GT(sums.seated, seeds / 10);
  }
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
