// That the checkers see a bug: each mutant of mutant.h is found within some seeds.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "netplugin/collnet/mutant.h"
#include "tests/collnet/world.h"

namespace r2cc::collnet_test {
namespace {

using collnet::Mutant;

constexpr uint64_t kSeeds = 300;

// The first seed at which something is wrong; 0: none.
uint64_t FoundAt(Mutant bug, const std::function<std::string(uint64_t)>& run) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    collnet::mutant = bug;
    const std::string wrong = run(seed);
    collnet::mutant = Mutant::kNothing;
    if (!wrong.empty()) return seed;
  }
  return 0;
}

std::string RunSeed(uint64_t seed) {
  Scenario scenario;
  scenario.seed = scenario.timing_seed = seed;
  scenario.members = 2 + seed % 5;
  scenario.random_schedules = seed % 3 != 0;
  scenario.replans = 8;
  return World(scenario).Run();
}

TEST(MutantTest, NothingIsFoundWhereNothingIsMutant) { EXPECT_EQ(FoundAt(Mutant::kNothing, RunSeed), 0u); }

class Bugs : public testing::TestWithParam<Mutant> {};
TEST_P(Bugs, IsFound) { EXPECT_NE(FoundAt(GetParam(), RunSeed), 0u); }

INSTANTIATE_TEST_SUITE_P(All, Bugs,
                         testing::Values(Mutant::kStampNotAwaited, Mutant::kCountedTwice, Mutant::kForwardedEarly, Mutant::kDoneWhenSent,
                                         Mutant::kSlotNotAwaited, Mutant::kWeightIgnored, Mutant::kStampChanged));

TEST(MutantTest, AStampThatIsNotForwardedIsFound) {
  const auto run = [](uint64_t seed) {
    Scenario scenario;
    scenario.seed = scenario.timing_seed = seed;
    scenario.members = 4;
    scenario.operations = 60;
    scenario.random_schedules = false;
    scenario.cuts = 2;
    return World(scenario).Run();
  };
  EXPECT_EQ(FoundAt(Mutant::kNothing, run), 0u);
  EXPECT_NE(FoundAt(Mutant::kStampNotForwarded, run), 0u);
}

// A member that is told of shares of nothing must not begin an operation by them.
TEST(MutantTest, APlanThatIsNoneIsFound) {
  const auto run = [](uint64_t seed) -> std::string {
    collnet::Stamp stamp{1, 0, 16, {}};
    stamp.plan.parts = {collnet::PlanSpec::kWhole, static_cast<uint32_t>(seed)};
    collnet::Executor member({.members = 2, .member = 1}, nullptr, nullptr);
    member.MessageReceived(0, Encode(collnet::Message(stamp)), 0);
    return member.failed() ? "" : "shares that add up to more than all were believed";
  };
  EXPECT_EQ(FoundAt(Mutant::kNothing, run), 0u);
  EXPECT_NE(FoundAt(Mutant::kPlanNotChecked, run), 0u);
}

// The sum of symbols does not tell in which order they were added; numbers that are rounded do.
TEST(MutantTest, AnotherOrderIsFound) {
  const auto run = [](uint64_t seed) -> std::string {
    Scenario scenario;
    scenario.seed = scenario.timing_seed = seed;
    scenario.members = 4;
    scenario.floats = true;
    World one(scenario);
    std::string wrong = one.Run();
    scenario.timing_seed = ~seed;
    World other(scenario);
    wrong += other.Run();
    return wrong.empty() && one.results_hash() != other.results_hash() ? "another result" : wrong;
  };
  EXPECT_EQ(FoundAt(Mutant::kNothing, run), 0u);
  EXPECT_NE(FoundAt(Mutant::kArrivalOrder, run), 0u);
}

}  // namespace
}  // namespace r2cc::collnet_test
