// The contract's tests can fail: each mutant of the sessions fails the test that is there for it. Two are beyond what a
// transport shows from outside, kDoubleDelivery and kFenceStale: tests/sim's checkers see them.
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "tests/contract/mutant_run.h"

namespace r2cc::contract {
namespace {

using net::Mutant;

struct Case {
  Mutant bug;
  std::string name;
  std::string test;
  std::string world = "Sim";
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class MutantTest : public testing::TestWithParam<Case> {
 protected:
  static MutantRun Run(Mutant bug) {
    const std::string program = GetParam().world == "Sim" ? "tests/contract/sim_test" : "tests/contract/stub_test";
    return RunMutant(bug, program, GetParam().world + "/Contract." + GetParam().test + "/*");
  }
};

TEST_P(MutantTest, IsCaught) {
  const MutantRun sound = Run(Mutant::kNothing);
  EXPECT_EQ(sound.code, 0) << sound.output;
  EXPECT_NE(sound.output.find("[  PASSED  ] 1 test."), std::string::npos) << sound.output;
  const MutantRun run = Run(GetParam().bug);
  EXPECT_EQ(run.code, 1) << "not seen, or fallen over: " << run.output;
}

INSTANTIATE_TEST_SUITE_P(Bugs, MutantTest,
                         testing::Values(Case{Mutant::kUngranted, "Ungranted", "GrantedNothingTravelsBeforeItsBufferIsPosted"},
                                         Case{Mutant::kGrantDropped, "GrantDropped", "ExactlyOnceEverySize"},
                                         Case{Mutant::kEagerCredit, "EagerCredit", "EagerCreditIsKept"},
                                         Case{Mutant::kEagerUncopied, "EagerUncopied", "EagerCopyIsReplayedWhenItsRailDies"},
                                         Case{Mutant::kEagerFreed, "EagerFreed", "EagerCopyIsReplayedWhenItsRailDies"},
                                         Case{Mutant::kOffBoundary, "OffBoundary", "ExactlyOnceInChunksOfWholeLines"},
                                         Case{Mutant::kZeroForgotten, "ZeroForgotten", "ExactlyOnceEverySize"},
                                         Case{Mutant::kDoneWhenSent, "DoneWhenSent", "ExactlyOnceEverySize"},
                                         Case{Mutant::kAckBeforePlacement, "AckBeforePlacement", "ExactlyOnceBothWaysAtOnce"},
                                         Case{Mutant::kNotResent, "NotResent", "PathsAllLostAndBackWithinTheDeadline"},
                                         Case{Mutant::kSentOnce, "SentOnce", "AbortOfEitherSideIsTheOthersError"},
                                         Case{Mutant::kByeLost, "ByeLost", "AbortOfEitherSideIsTheOthersError"},
                                         Case{Mutant::kEarlyDone, "EarlyDone", "ExactlyOnceEverySize"},
                                         Case{Mutant::kLateWrite, "LateWrite", "AbortWaitsForNoPeer"},
                                         Case{Mutant::kClaimKept, "ClaimKept", "FencedOnceForAllFlowsOfTheLink"},
                                         Case{Mutant::kFenceMissing, "FenceMissing", "FencedOnceForAllFlowsOfTheLink"},
                                         Case{Mutant::kFenceUnfulfilled, "FenceUnfulfilled", "FencedWhicheverEndSeesIt"},
                                         Case{Mutant::kFalseFence, "FalseFence", "SilenceOfAStoppedPeerIsWaitedForWithoutLimit"},
                                         Case{Mutant::kFalseError, "FalseError", "PathsAllLostAndBackWithinTheDeadline"}),
                         [](const auto& info) { return info.param.name; });

// What the peers promise to a transport whose closes take time.
INSTANTIATE_TEST_SUITE_P(StubBugs, MutantTest,
                         testing::Values(Case{Mutant::kFencedEarly, "FencedEarly", "FencedWhicheverEndSeesIt", "Stub"},
                                         Case{Mutant::kCloseNotAwaited, "CloseNotAwaited", "FencedNeverByACloseThatCannotBeFinished",
                                              "Stub"},
                                         Case{Mutant::kForgottenEarly, "ForgottenEarly", "NoLateWriteOfTheRestOfAHalfReadChunk", "Stub"},
                                         Case{Mutant::kLateWrite, "LateWrite", "AbortOfEitherSideIsTheOthersError", "Stub"}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace r2cc::contract
