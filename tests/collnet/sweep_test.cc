// Groups of executors, seed by seed. More of them: --seeds=10000; one again: --seed=N.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "bazel/processor_seconds.h"
#include "tests/collnet/world.h"

namespace r2cc::collnet_test {
namespace {

uint64_t first_seed = 1, seeds = 300;

Scenario Make(uint64_t seed) {
  Scenario scenario;
  scenario.seed = scenario.timing_seed = seed;
  scenario.members = 2 + seed % 5;
  scenario.random_schedules = seed % 3 != 0;
  scenario.replans = seed % 4 * 3;
  return scenario;
}

// Schedules without a generator's name and those of the generators; several operations at a time; plans that change.
TEST(SweepTest, EveryContributionIsInEveryResultOnce) {
  uint64_t plans = 0;
  for (uint64_t seed = first_seed; seed < first_seed + seeds; ++seed) {
    World world(Make(seed));
    ASSERT_EQ(world.Run(), "");
    plans += world.plans();
  }
  EXPECT_TRUE(seeds < 100 || plans > seeds * 3 / 2) << plans << " plans: they are to change";
}

// The same operations, everything at other times: the same bits, of types that are rounded.
TEST(SweepTest, TimeDoesNotChangeABit) {
  for (uint64_t seed = first_seed; seed < first_seed + seeds / 3; ++seed) {
    Scenario scenario = Make(seed);
    scenario.floats = true;
    scenario.replans = 0;  // which operations a new plan begins with is a matter of time
    World one(scenario);
    ASSERT_EQ(one.Run(), "");
    scenario.timing_seed = ~seed;
    World other(scenario);
    ASSERT_EQ(other.Run(), "");
    ASSERT_EQ(one.results_hash(), other.results_hash()) << "seed " << seed;
  }
}

// Direct shares add up in the members' order, so not even who owns what, and where segments begin, changes a bit.
TEST(SweepTest, DirectSharesDoNotChangeABit) {
  for (uint64_t seed = 3; seed < 3 + seeds / 10; ++seed) {
    Scenario scenario = Make(seed);
    scenario.random_schedules = false;
    scenario.floats = scenario.direct_only = true;
    scenario.replans = 0;
    World one(scenario);
    ASSERT_EQ(one.Run(), "");
    scenario.replans = 8;
    World other(scenario);
    ASSERT_EQ(other.Run(), "");
    ASSERT_EQ(one.results_hash(), other.results_hash()) << "seed " << seed;
  }
}

// Members that have no path to each other for a while: what is stamped waits, all else goes on, and everybody hears of every stamp.
TEST(SweepTest, PairsWithoutAPathChangeNoResult) {
  uint64_t plans = 0;
  for (uint64_t seed = first_seed; seed < first_seed + seeds / 3; ++seed) {
    Scenario scenario = Make(seed);
    scenario.members = 2 + seed % 5;
    scenario.operations = 60;
    scenario.random_schedules = false;
    scenario.cuts = 1 + seed % 5;
    World world(scenario);
    ASSERT_EQ(world.Run(), "");
    plans += world.plans();
  }
  EXPECT_TRUE(seeds < 100 || plans > seeds * 2 / 3) << plans << " plans: they are to change";
}

class FaultTest : public testing::TestWithParam<Scenario::Fault> {};

// Whoever it is and whenever: one error on each member, no result of an operation in which members differ, and no hang.
TEST_P(FaultTest, EveryMemberFailsOnceAndNobodyHasAWrongResult) {
  for (uint64_t seed = first_seed; seed < first_seed + seeds / 5; ++seed) {
    Scenario scenario = Make(seed);
    scenario.fault = GetParam();
    scenario.fault_at = seed % 18;
    scenario.faulty = static_cast<uint32_t>(seed / 7 % scenario.members);
    scenario.deadline = 100 * kNanosPerSecond;
    World world(scenario);
    ASSERT_EQ(world.Run(), "");
    for (const std::string& error : world.errors()) {
      const std::string want = GetParam() == Scenario::Fault::kOtherCount   ? "count|size"
                               : GetParam() == Scenario::Fault::kOtherType  ? "type"
                               : GetParam() == Scenario::Fault::kOtherOp    ? "op "
                               : GetParam() == Scenario::Fault::kNeverCalls ? "no progress for 100000 ms"
                                                                            : "has lost member";
      EXPECT_TRUE(error.find(want.substr(0, want.find('|'))) != std::string::npos ||
                  (want.find('|') != std::string::npos && error.find("size") != std::string::npos))
          << error;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, FaultTest,
                         testing::Values(Scenario::Fault::kOtherCount, Scenario::Fault::kOtherType, Scenario::Fault::kOtherOp,
                                         Scenario::Fault::kNeverCalls, Scenario::Fault::kLosesPeer));

}  // namespace
}  // namespace r2cc::collnet_test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  r2cc::RecordProcessorSeconds();
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto value = [&](const std::string& flag, uint64_t* to) {
      if (argument.rfind(flag, 0) != 0) return false;
      *to = std::strtoull(argument.c_str() + flag.size(), nullptr, 10);
      return true;
    };
    if (value("--seed=", &r2cc::collnet_test::first_seed)) r2cc::collnet_test::seeds = 1;
    value("--seeds=", &r2cc::collnet_test::seeds);
    value("--first=", &r2cc::collnet_test::first_seed);
  }
  return RUN_ALL_TESTS();
}
