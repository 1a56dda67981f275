// close_test and workers_test can fail: each mutant of what workers do fails the test that is there for it, each time.
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "tests/contract/mutant_run.h"

namespace r2cc::plugin_test {
namespace {

using contract::MutantRun;
using contract::RunMutant;
using net::Mutant;

constexpr char kProgram[] = "tests/plugin/mutant";

struct Case {
  Mutant bug;
  std::string name;
  std::string test;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class MutantTest : public testing::TestWithParam<Case> {};

TEST_P(MutantTest, IsCaught) {
  const MutantRun sound = RunMutant(Mutant::kNothing, kProgram, GetParam().test);
  EXPECT_EQ(sound.code, 0) << sound.output;
  EXPECT_NE(sound.output.find("[  PASSED  ] 1 test."), std::string::npos) << sound.output;
  const MutantRun run = RunMutant(GetParam().bug, kProgram, GetParam().test);
  EXPECT_EQ(run.code, 1) << "not seen, or fallen over: " << run.output;
}

INSTANTIATE_TEST_SUITE_P(
    Bugs, MutantTest,
    testing::Values(Case{Mutant::kCloseDoesNotWait, "CloseOfAReceiverDoesNotWait", "Close.CloseOfAReceiverWaitsForTheKernelsWrite"},
                    Case{Mutant::kCloseDoesNotWait, "CloseOfASenderDoesNotWait", "Close.CloseOfASenderWaitsForTheKernelsRead"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace r2cc::plugin_test
