// close_test and workers_test can fail: each bug that can be planted in what workers do fails the test that is there for it, each time.
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "tests/contract/planted_run.h"

namespace r2cc::plugin_test {
namespace {

using contract::PlantedRun;
using contract::RunPlanted;
using net::Planted;

constexpr char kProgram[] = "tests/plugin/planted";

struct Case {
  Planted bug;
  std::string name;
  std::string test;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class PlantedTest : public testing::TestWithParam<Case> {};

TEST_P(PlantedTest, IsCaught) {
  const PlantedRun sound = RunPlanted(Planted::kNothing, kProgram, GetParam().test);
  EXPECT_EQ(sound.code, 0) << sound.output;
  EXPECT_NE(sound.output.find("[  PASSED  ] 1 test."), std::string::npos) << sound.output;
  const PlantedRun run = RunPlanted(GetParam().bug, kProgram, GetParam().test);
  EXPECT_EQ(run.code, 1) << "not seen, or fallen over: " << run.output;
}

INSTANTIATE_TEST_SUITE_P(
    Bugs, PlantedTest,
    testing::Values(Case{Planted::kCloseDoesNotWait, "CloseOfAReceiverDoesNotWait", "Close.CloseOfAReceiverWaitsForTheKernelsWrite"},
                    Case{Planted::kCloseDoesNotWait, "CloseOfASenderDoesNotWait", "Close.CloseOfASenderWaitsForTheKernelsRead"},
                    Case{Planted::kDismissedUntold, "DismissedUntold", "Workers.WhatTheLastCallHasReadIsNotLostWhenTheSocketIsTakenBack"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace r2cc::plugin_test
