// The contract's tests can fail: each bug that can be planted in the sessions fails the test that is there for it. Two are beyond what a
// transport shows from outside, kDoubleDelivery and kFenceStale: tests/sim's checkers see them.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <ostream>
#include <sstream>
#include <string>

#include "netplugin/flow/planted.h"

namespace r2cc::contract {
namespace {

using net::Planted;

struct Case {
  Planted bug;
  std::string name;
  std::string test;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class PlantedTest : public testing::TestWithParam<Case> {
 protected:
  // The test's exit code with `bug` planted; what it printed is in output_.
  int Run(Planted bug) {
    const std::string file = std::string(std::getenv("TEST_TMPDIR")) + "/" + GetParam().name + ".log";
    const std::string command = "R2CC_PLANTED=" + std::to_string(static_cast<int>(bug)) +
                                " tests/contract/sim_planted --gtest_filter='Sim/Contract." + GetParam().test + "/*' > '" + file + "' 2>&1";
    const int status = std::system(command.c_str());
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    output_ = text.str();
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string output_;
};

TEST_P(PlantedTest, IsCaught) {
  EXPECT_EQ(Run(Planted::kNothing), 0) << output_;
  EXPECT_NE(output_.find("[  PASSED  ] 1 test."), std::string::npos) << output_;
  EXPECT_EQ(Run(GetParam().bug), 1) << "not seen, or fallen over: " << output_;
}

INSTANTIATE_TEST_SUITE_P(Bugs, PlantedTest,
                         testing::Values(Case{Planted::kUngranted, "Ungranted", "GrantedNothingTravelsBeforeItsBufferIsPosted"},
                                         Case{Planted::kGrantDropped, "GrantDropped", "ExactlyOnceEverySize"},
                                         Case{Planted::kEagerCredit, "EagerCredit", "EagerCreditIsKept"},
                                         Case{Planted::kEagerUncopied, "EagerUncopied", "EagerCopyIsReplayedWhenItsRailDies"},
                                         Case{Planted::kEagerFreed, "EagerFreed", "EagerCopyIsReplayedWhenItsRailDies"},
                                         Case{Planted::kOffBoundary, "OffBoundary", "ExactlyOnceInChunksOfWholeLines"},
                                         Case{Planted::kZeroForgotten, "ZeroForgotten", "ExactlyOnceEverySize"},
                                         Case{Planted::kDoneWhenSent, "DoneWhenSent", "ExactlyOnceEverySize"},
                                         Case{Planted::kAckBeforePlacement, "AckBeforePlacement", "ExactlyOnceBothWaysAtOnce"},
                                         Case{Planted::kNotToldAgain, "NotToldAgain", "PathsAllLostAndBackWithinTheDeadline"},
                                         Case{Planted::kToldOnce, "ToldOnce", "AbortOfEitherSideIsTheOthersError"},
                                         Case{Planted::kByeLost, "ByeLost", "AbortOfEitherSideIsTheOthersError"},
                                         Case{Planted::kEarlyDone, "EarlyDone", "ExactlyOnceEverySize"},
                                         Case{Planted::kLateWrite, "LateWrite", "AbortWaitsForNoPeer"},
                                         Case{Planted::kClaimKept, "ClaimKept", "FencedOnceForAllFlowsOfTheLink"},
                                         Case{Planted::kFenceMissing, "FenceMissing", "FencedOnceForAllFlowsOfTheLink"},
                                         Case{Planted::kFenceUnfulfilled, "FenceUnfulfilled", "FencedWhicheverEndSeesIt"},
                                         Case{Planted::kFalseFence, "FalseFence", "SilenceOfAStoppedPeerIsWaitedForWithoutLimit"},
                                         Case{Planted::kFalseError, "FalseError", "PathsAllLostAndBackWithinTheDeadline"}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace r2cc::contract
