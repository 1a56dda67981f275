// The checkers find each mutant of netplugin/collnet/mutant.h: see tests/sim/mutant_search.h for the flags.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "netplugin/collnet/mutant.h"
#include "tests/collnet/world.h"
#include "tests/sim/mutant_search.h"

namespace r2cc::collnet_test {
namespace {

using collnet::CollNetMutant;

using Run = std::function<std::string(uint64_t seed)>;  // returns what is wrong

constexpr uint64_t kSeeds = 300;

sim::MutantSearch search("//tests/collnet:mutant_search_test", "tests/collnet/mutant_seeds.txt");

void ExpectFound(CollNetMutant bug, const std::string& name, const Run& run) {
  std::vector<uint64_t> seeds(kSeeds);
  std::iota(seeds.begin(), seeds.end(), 1);
  search.ExpectCaught(name, seeds, [&](uint64_t seed, bool with_mutant) {
    collnet::mutant = with_mutant ? bug : CollNetMutant::kNothing;
    std::string wrong = run(seed);
    collnet::mutant = CollNetMutant::kNothing;
    return wrong;
  });
}

// With --search at all seeds.
void ExpectNothingFoundWithoutAMutant(const Run& run) {
  for (uint64_t seed = 1; seed <= (search.searches() ? kSeeds : 10); ++seed) ASSERT_EQ(run(seed), "") << "seed " << seed;
}

std::string RunSeed(uint64_t seed) {
  Scenario scenario;
  scenario.seed = scenario.timing_seed = seed;
  scenario.members = 2 + seed % 5;
  scenario.random_schedules = seed % 3 != 0;
  scenario.replans = 8;
  return World(scenario).Run();
}

TEST(MutantTest, NothingIsFoundWhereNothingIsMutant) { ExpectNothingFoundWithoutAMutant(RunSeed); }

struct Case {
  CollNetMutant bug;
  const char* name;
};

class Bugs : public testing::TestWithParam<Case> {};
TEST_P(Bugs, IsFound) { ExpectFound(GetParam().bug, GetParam().name, RunSeed); }

INSTANTIATE_TEST_SUITE_P(
    All, Bugs,
    testing::Values(Case{CollNetMutant::kStampNotAwaited, "StampNotAwaited"}, Case{CollNetMutant::kCountedTwice, "CountedTwice"},
                    Case{CollNetMutant::kForwardedEarly, "ForwardedEarly"}, Case{CollNetMutant::kDoneWhenSent, "DoneWhenSent"},
                    Case{CollNetMutant::kSlotNotAwaited, "SlotNotAwaited"}, Case{CollNetMutant::kWeightIgnored, "WeightIgnored"},
                    Case{CollNetMutant::kStampChanged, "StampChanged"}),
    [](const auto& info) { return std::string(info.param.name); });

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
  ExpectNothingFoundWithoutAMutant(run);
  ExpectFound(CollNetMutant::kStampNotForwarded, "StampNotForwarded", run);
}

// A member that is told of shares of nothing must not begin an operation by them.
TEST(MutantTest, APlanThatIsNoneIsFound) {
  const auto run = [](uint64_t seed) -> std::string {
    collnet::Stamp stamp{1, 0, 16, {}};
    stamp.plan.parts = {collnet::PlanSpec::kWhole, static_cast<uint32_t>(seed)};
    collnet::MemberExecutor member({.members = 2, .member = 1}, nullptr, nullptr);
    member.MessageReceived(0, Encode(collnet::Message(stamp)), 0);
    return member.failed() ? "" : "shares that add up to more than all were believed";
  };
  ExpectNothingFoundWithoutAMutant(run);
  ExpectFound(CollNetMutant::kPlanNotChecked, "PlanNotChecked", run);
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
  ExpectNothingFoundWithoutAMutant(run);
  ExpectFound(CollNetMutant::kArrivalOrder, "ArrivalOrder", run);
}

}  // namespace
}  // namespace r2cc::collnet_test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return r2cc::collnet_test::search.RunTests(argc, argv);
}
