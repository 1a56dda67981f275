// A failing seed comes down to the faults that it needs.
#include "tests/sim/shrink.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/log.h"
#include "tests/cluster/bug.h"
#include "tests/world/scenario.h"

namespace r2cc::world {
namespace {

using sim::Fault;
using sim::FaultKind;

constexpr Nanos kSecond = kNanosPerSecond;

sim::Scenario WithPauses(size_t count) {
  sim::Scenario scenario;
  scenario.faults.resize(count);
  for (size_t i = 0; i < count; ++i) scenario.faults[i].degree = static_cast<int>(i);
  return scenario;
}

TEST(Shrink, KeepsWhatIsNeededAndNothingElse) {
  for (const std::vector<size_t>& needed :
       std::vector<std::vector<size_t>>{{}, {0}, {11}, {3, 7}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}}) {
    int runs = 0;
    const auto fails = [&](const sim::Scenario& less) {
      ++runs;
      return std::all_of(needed.begin(), needed.end(), [&](size_t fault) {
        return std::any_of(less.faults.begin(), less.faults.end(), [&](const Fault& one) { return one.degree == static_cast<int>(fault); });
      });
    };
    EXPECT_EQ(sim::Shrink(WithPauses(12), fails), needed);
    EXPECT_LE(runs, 60) << sim::ListText(needed);
  }
}

TEST(Shrink, ListsAreReadBack) {
  std::vector<size_t> list;
  ASSERT_TRUE(sim::ParseList(sim::ListText({3, 7, 11}), &list));
  EXPECT_EQ(list, (std::vector<size_t>{3, 7, 11}));
  ASSERT_TRUE(sim::ParseList("", &list));
  EXPECT_TRUE(list.empty());
  for (const char* wrong : {"3;7", "x", "3,x", ","}) EXPECT_FALSE(sim::ParseList(wrong, &list)) << wrong;
}

// A daemon that keeps no setting on its disk: it takes a drain and a kill to see it, whatever else happens.
TEST(Shrink, AHistoryOfTenFaultsComesDownToTheTwoThatMatter) {
  ASSERT_EQ(chdir(testing::TempDir().c_str()), 0);
  SetMinSeverity(Severity::kError);
  const uint64_t seed = 7;
  sim::Scenario scenario = MakeScenario(seed);
  scenario.kind = sim::Class::kHealing;
  scenario.faults.clear();
  for (int i = 0; i < 4; ++i)
    scenario.faults.push_back({.kind = FaultKind::kPause, .at = (2 + i) * kSecond, .duration = kNanosPerMs, .a = i % 2});
  scenario.faults.push_back({.kind = FaultKind::kDrained, .at = 4 * kSecond, .duration = 4 * kSecond, .a = 0, .degree = 1});
  for (int i = 0; i < 4; ++i)
    scenario.faults.push_back({.kind = FaultKind::kReset, .at = (3 + i) * kSecond, .a = i % 2, .b = 1 - i % 2, .degree = 3});
  scenario.faults.push_back({.kind = FaultKind::kDaemonKilled, .at = 6 * kSecond, .duration = kSecond / 10, .a = 0});
  ASSERT_TRUE(RunWorld(scenario, seed, false).violations.empty());
  cluster::bug = cluster::Bug::kSettingForgotten;
  const auto fails = [&](const sim::Scenario& less) {
    const std::vector<std::string> violations = RunWorld(less, seed, false).violations;
    return !violations.empty() && violations.front().starts_with("[operator's setting]");
  };
  EXPECT_TRUE(fails(scenario));
  EXPECT_EQ(sim::Shrink(scenario, fails), (std::vector<size_t>{4, 9}));
  cluster::bug = cluster::Bug::kNothing;
}

}  // namespace
}  // namespace r2cc::world
