// The contract's tests can fail: each bug that can be planted in the sessions fails the test that is there for it. Two are beyond what a
// transport shows from outside, kDoubleDelivery and kFenceStale: tests/sim's checkers see them.
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "tests/contract/planted_run.h"

namespace r2cc::contract {
namespace {

using net::Planted;

struct Case {
  Planted bug;
  std::string name;
  std::string test;
  std::string world = "Sim";
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class PlantedTest : public testing::TestWithParam<Case> {
 protected:
  static PlantedRun Run(Planted bug) {
    const std::string program = GetParam().world == "Sim" ? "tests/contract/sim_planted" : "tests/contract/stub_planted";
    return RunPlanted(bug, program, GetParam().world + "/Contract." + GetParam().test + "/*");
  }
};

TEST_P(PlantedTest, IsCaught) {
  const PlantedRun sound = Run(Planted::kNothing);
  EXPECT_EQ(sound.code, 0) << sound.output;
  EXPECT_NE(sound.output.find("[  PASSED  ] 1 test."), std::string::npos) << sound.output;
  const PlantedRun run = Run(GetParam().bug);
  EXPECT_EQ(run.code, 1) << "not seen, or fallen over: " << run.output;
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

// What the peers promise to a transport whose closes take time.
INSTANTIATE_TEST_SUITE_P(StubBugs, PlantedTest,
                         testing::Values(Case{Planted::kFencedEarly, "FencedEarly", "FencedWhicheverEndSeesIt", "Stub"},
                                         Case{Planted::kCloseNotAwaited, "CloseNotAwaited", "FencedNeverByACloseThatCannotBeFinished",
                                              "Stub"},
                                         Case{Planted::kForgottenEarly, "ForgottenEarly", "NoLateWriteOfTheRestOfAHalfReadChunk", "Stub"},
                                         Case{Planted::kLateWrite, "LateWrite", "AbortOfEitherSideIsTheOthersError", "Stub"}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace r2cc::contract
