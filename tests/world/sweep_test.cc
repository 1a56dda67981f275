// Many seeds of the one world: see tests/sim/sweep.h for the flags.
#include "tests/sim/sweep.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

#include "base/log.h"
#include "bazel/processor_seconds.h"
#include "tests/world/scenario.h"

namespace r2cc::world {
namespace {

sim::Sweep& TheSweep() {
  static sim::Sweep sweep({"//tests/world:sweep_test", MakeScenario, RunWorld});
  return sweep;
}

TEST(World, NoSeedBreaksAPromise) { TheSweep().RunAll(); }

TEST(World, ASeedReplaysExactly) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const sim::Result one = TheSweep().Run(seed), two = TheSweep().Run(seed);
    EXPECT_EQ(one.events, two.events) << "seed " << seed;
    EXPECT_EQ(one.virtual_time, two.virtual_time) << "seed " << seed;
    EXPECT_EQ(one.coverage.Text(), two.coverage.Text()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace r2cc::world

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  r2cc::RecordProcessorSeconds();
  r2cc::SetMinSeverity(r2cc::Severity::kError);
  // The path of a socket is short.
  if (chdir(testing::TempDir().c_str()) != 0) return 2;
  r2cc::sim::Sweep& sweep = r2cc::world::TheSweep();
  sweep.AnnounceAborts();
  for (int i = 1; i < argc; ++i) {
    if (sweep.TakeFlag(argv[i])) continue;
    std::fprintf(stderr, "unknown flag %s: see tests/sim/sweep.h\n", argv[i]);
    return 2;
  }
  if (sweep.is_one()) r2cc::SetMinSeverity(r2cc::Severity::kInfo);
  return RUN_ALL_TESTS();
}
