// The checkers find each mutant of netplugin/collnet/mutant.h. By default at one of its seeds in mutant_seeds.txt; with --search at one of
// some hundred, and --write=FILE pins the first that do.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "bazel/processor_seconds.h"
#include "netplugin/collnet/mutant.h"
#include "tests/collnet/world.h"
#include "tests/sim/pinned_seeds.h"

namespace r2cc::collnet_test {
namespace {

using collnet::CollNetMutant;

using Run = std::function<std::string(uint64_t seed)>;  // returns what is wrong

constexpr uint64_t kSeeds = 300;
constexpr char kPinnedPath[] = "tests/collnet/mutant_seeds.txt";
constexpr char kRefresh[] = "./bazelw run //tests/collnet:mutant_search_test -- --write=$PWD/tests/collnet/mutant_seeds.txt";

bool search = false;
std::string write_path;  // empty: nothing is written
sim::PinnedSeeds pinned;
sim::PinnedSeeds found;  // by the mutant's name, as in the file

// Runs the seeds of `name` with `bug`, expects that one of them is found, and that all is well at that seed without it.
void ExpectFound(CollNetMutant bug, const std::string& name, const Run& run) {
  std::vector<uint64_t> seeds = search ? std::vector<uint64_t>(kSeeds) : pinned[name];
  if (search) std::iota(seeds.begin(), seeds.end(), 1);
  std::vector<uint64_t> caught;
  for (const uint64_t seed : seeds) {
    collnet::mutant = bug;
    const std::string wrong = run(seed);
    collnet::mutant = CollNetMutant::kNothing;
    if (wrong.empty()) continue;
    EXPECT_EQ(run(seed), "") << "without the mutant, seed " << seed;
    caught.push_back(seed);
    if (caught.size() == (write_path.empty() ? 1 : sim::kPinnedSeedsMax)) break;
  }
  EXPECT_FALSE(caught.empty()) << name << " is not found at any of " << seeds.size() << " seeds"
                               << (search ? "" : std::string("; after a change of the code pin other seeds: ") + kRefresh);
  found[name] = caught;
}

// With --search at all seeds.
void ExpectNothingFoundWithoutAMutant(const Run& run) {
  for (uint64_t seed = 1; seed <= (search ? kSeeds : 10); ++seed) ASSERT_EQ(run(seed), "") << "seed " << seed;
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
  using namespace r2cc::collnet_test;
  testing::InitGoogleTest(&argc, argv);
  r2cc::RecordProcessorSeconds();
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--search") {
      search = true;
    } else if (argument.rfind("--write=", 0) == 0) {
      write_path = argument.substr(argument.find('=') + 1);
    } else {
      std::fprintf(stderr, "unknown flag %s: there are --search and, with it, --write=FILE\n", argument.c_str());
      return 2;
    }
  }
  std::string error;
  if (search || r2cc::sim::ReadPinnedSeeds(kPinnedPath, &pinned, &error)) {
    const int code = RUN_ALL_TESTS();
    if (code != 0 || !search || write_path.empty() ||
        r2cc::sim::WritePinnedSeeds(write_path, found, std::string("To refresh: ") + kRefresh, &error))
      return code;
  }
  std::fprintf(stderr, "%s\n", error.c_str());
  return 1;
}
