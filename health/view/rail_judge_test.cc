#include "health/view/rail_judge.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace r2cc::health {
namespace {

using What = RailAction::What;
constexpr Nanos kMs = kNanosPerMs;
const NicKey kOwn = {"n0", "r0"};

RailPairStatus Pair(const std::string& peer, PairState state, Nanos answered_sent = 0) {
  RailPairStatus pair;
  pair.key = {kOwn, {peer, "r0"}};
  pair.state = state;
  pair.verdict = pair.fresh_verdict = VerdictOf(state);
  pair.answered_sent = answered_sent;
  return pair;
}

class RailJudgeTest : public testing::Test {
 protected:
  RailJudgeTest() { judge_.Add("r0"); }

  // The result if the matrix locates `fault`.
  std::vector<RailAction> Judge(Fault fault, Nanos now) {
    std::vector<RailAction> actions = judge_.Judge("r0", {.fault = std::move(fault), .pairs = pairs_, .others_alive = others_alive_}, now);
    return actions;
  }
  static Fault Of(FaultKind kind, std::vector<NicKey> peers) {
    Fault fault;
    fault.kind = kind;
    fault.peers = std::move(peers);
    return fault;
  }
  static Fault Unusable(FaultKind kind) {
    Fault fault = Of(kind, {{"n1", "r0"}, {"n2", "r0"}});
    fault.unusable = true;
    return fault;
  }
  static int Count(const std::vector<RailAction>& actions, What what) {
    int count = 0;
    for (const RailAction& action : actions) count += action.what == what;
    return count;
  }
  // The evidence that `actions` report, by kind and detail.
  static std::vector<std::pair<EvidenceKind, NicKey>> Reports(const std::vector<RailAction>& actions) {
    std::vector<std::pair<EvidenceKind, NicKey>> reports;
    for (const RailAction& action : actions) {
      if (action.what != What::kReport) continue;
      EXPECT_EQ(action.evidence.subject, kOwn);
      EXPECT_EQ(action.evidence.observer, "n0");
      reports.emplace_back(action.evidence.kind, action.evidence.peer);
    }
    return reports;
  }
  using Expected = std::vector<std::pair<EvidenceKind, NicKey>>;
  const RailFinding& verdict() const { return judge_.verdicts().at("r0"); }

  RailJudge judge_{"n0", {}};
  std::vector<RailPairStatus> pairs_;
  bool others_alive_ = true;
};

TEST_F(RailJudgeTest, SilenceToTwoNodesIsAVerdictAtOnce) {
  pairs_ = {Pair("n1", PairState::kSilent, 10 * kMs), Pair("n2", PairState::kSilent, 10 * kMs)};
  EXPECT_TRUE(judge_.AnythingToJudge(pairs_));
  EXPECT_FALSE(judge_.AnyVerdict());
  const auto actions = Judge(Unusable(FaultKind::kPort), 100 * kMs);
  EXPECT_EQ(Reports(actions), (Expected{{EvidenceKind::kRailSilent, {}}}));
  EXPECT_EQ(actions[0].evidence.when, 100 * kMs);
  EXPECT_EQ(actions[0].evidence.detail, FaultText(kOwn, Unusable(FaultKind::kPort)));
  EXPECT_EQ(Count(actions, What::kChanged), 1) << "the others are to know that the port is dead";
  EXPECT_TRUE(verdict().silent && verdict().port_dead);
  EXPECT_EQ(verdict().silent_since, 100 * kMs);
  EXPECT_TRUE(judge_.AnyVerdict());
  EXPECT_TRUE(Judge(Unusable(FaultKind::kPort), 200 * kMs).empty()) << "it was reported";
}

TEST_F(RailJudgeTest, ReportsOfOthersDoNotOutweighAFreshAnswer) {
  pairs_ = {Pair("n1", PairState::kSilent, 10 * kMs), Pair("n2", PairState::kUp, 90 * kMs)};
  const Fault fault = Unusable(FaultKind::kPort);
  for (const Nanos now : {100 * kMs, 200 * kMs, 299 * kMs}) {
    const auto actions = Judge(fault, now);
    EXPECT_EQ(Count(actions, What::kSuspect), 1) << "it is probed";
    EXPECT_EQ(Reports(actions), Expected());
  }
  pairs_[1].answered_sent = 250 * kMs;
  EXPECT_EQ(Reports(Judge(fault, 449 * kMs)), Expected()) << "it answered in the meantime";
  EXPECT_EQ(Reports(Judge(fault, 450 * kMs)), (Expected{{EvidenceKind::kRailSilent, {}}}));
}

TEST_F(RailJudgeTest, ASuspicionThatEndsBeginsAgain) {
  pairs_ = {Pair("n1", PairState::kSilent), Pair("n2", PairState::kUp)};
  EXPECT_EQ(Reports(Judge(Unusable(FaultKind::kPort), 1000 * kMs)), Expected());
  EXPECT_EQ(Reports(Judge({}, 1100 * kMs)), Expected());
  EXPECT_EQ(Reports(Judge(Unusable(FaultKind::kPort), 1250 * kMs)), Expected());
  EXPECT_EQ(Reports(Judge(Unusable(FaultKind::kPort), 1450 * kMs)), (Expected{{EvidenceKind::kRailSilent, {}}}));
}

TEST_F(RailJudgeTest, ReportsOfOthersCountFromTheEndOfAFloodOn) {
  pairs_ = {Pair("n1", PairState::kSilent), Pair("n2", PairState::kUp)};
  EXPECT_EQ(Reports(Judge(Unusable(FaultKind::kPort), 1000 * kMs)), Expected());
  judge_.PeerKeptOut("r0", 1150 * kMs);
  EXPECT_EQ(Reports(Judge(Unusable(FaultKind::kPort), 1349 * kMs)), Expected());
  EXPECT_EQ(Reports(Judge(Unusable(FaultKind::kPort), 1350 * kMs)), (Expected{{EvidenceKind::kRailSilent, {}}}));
}

TEST_F(RailJudgeTest, ACableHasOneEnd) {
  RailJudge cabled("n0", {"r0"});
  cabled.Add("r0");
  pairs_ = {Pair("n1", PairState::kSilent)};
  const auto actions = cabled.Judge("r0", {.fault = Unusable(FaultKind::kCable), .pairs = pairs_}, 100 * kMs);
  EXPECT_EQ(Reports(actions), (Expected{{EvidenceKind::kRailSilent, {}}}));
}

TEST_F(RailJudgeTest, APeerThatMayStillAnswerHoldsTheVerdict) {
  pairs_ = {Pair("n1", PairState::kSilent), Pair("n2", PairState::kSilent), Pair("n3", PairState::kUp)};
  pairs_[2].fresh_verdict = PairVerdict::kUnknown;
  EXPECT_EQ(Reports(Judge(Unusable(FaultKind::kRail), 100 * kMs)), Expected());
  EXPECT_EQ(Reports(Judge(Unusable(FaultKind::kRail), 100 * kMs + kPathFaultHold - 1)), Expected());
  EXPECT_EQ(Reports(Judge(Unusable(FaultKind::kRail), 100 * kMs + kPathFaultHold)), (Expected{{EvidenceKind::kRailSilent, {}}}));
}

TEST_F(RailJudgeTest, ASharperFaultIsReportedAgain) {
  pairs_ = {Pair("n1", PairState::kSilent), Pair("n2", PairState::kSilent)};
  EXPECT_EQ(Reports(Judge(Unusable(FaultKind::kRail), 100 * kMs)).size(), 1u);
  EXPECT_FALSE(verdict().port_dead);
  EXPECT_EQ(Reports(Judge(Unusable(FaultKind::kPort), 200 * kMs)), Expected()) << "not yet";
  EXPECT_EQ(Reports(Judge(Unusable(FaultKind::kPort), 200 * kMs + SilenceReport::kHold)), (Expected{{EvidenceKind::kRailSilent, {}}}));
  EXPECT_EQ(verdict().silent_since, 100 * kMs) << "the silence is the same";
}

TEST_F(RailJudgeTest, OnlyAnAnswerEndsTheSilence) {
  pairs_ = {Pair("n1", PairState::kSilent), Pair("n2", PairState::kSilent)};
  Judge(Unusable(FaultKind::kPort), 100 * kMs);
  pairs_[0] = Pair("n1", PairState::kUnknown);
  pairs_[1] = Pair("n2", PairState::kUnknown);
  EXPECT_EQ(Reports(Judge({}, 200 * kMs)), Expected()) << "nothing is known";
  EXPECT_TRUE(verdict().silent);
  pairs_[0] = Pair("n1", PairState::kUp, 50 * kMs);
  EXPECT_EQ(Reports(Judge({}, 300 * kMs)), Expected()) << "an answer from before the silence shows nothing";
  pairs_[0] = Pair("n1", PairState::kUp, 350 * kMs);
  const auto actions = Judge({}, 400 * kMs);
  EXPECT_EQ(Reports(actions), (Expected{{EvidenceKind::kRailAnswers, {}}}));
  EXPECT_EQ(Count(actions, What::kRenew), 1);
  EXPECT_FALSE(verdict().silent || verdict().port_dead);
}

TEST_F(RailJudgeTest, TheVerdictEndsIfNoWitnessIsLeft) {
  pairs_ = {Pair("n1", PairState::kSilent), Pair("n2", PairState::kSilent)};
  Judge(Unusable(FaultKind::kPort), 100 * kMs);
  others_alive_ = false;
  Judge(Unusable(FaultKind::kPort), 200 * kMs);
  EXPECT_EQ(Reports(Judge(Unusable(FaultKind::kPort), 200 * kMs + kAloneMax - 1)), Expected());
  others_alive_ = true;
  EXPECT_EQ(Reports(Judge(Unusable(FaultKind::kPort), 200 * kMs + kAloneMax)), Expected());
  others_alive_ = false;
  const Nanos alone = 300 * kMs + kAloneMax;
  Judge(Unusable(FaultKind::kPort), alone);
  const auto actions = Judge(Unusable(FaultKind::kPort), alone + kAloneMax);
  EXPECT_EQ(Reports(actions), (Expected{{EvidenceKind::kRailAnswers, {}}}));
  EXPECT_FALSE(verdict().silent);
}

TEST_F(RailJudgeTest, APathIsPendingUntilProbesOverItAreLost) {
  const NicKey peer = {"n1", "r0"};
  const Fault fault = Of(FaultKind::kPath, {peer});
  pairs_ = {Pair("n1", PairState::kSilent), Pair("n2", PairState::kUp, 1)};
  pairs_[0].measures.sent = 10;
  EXPECT_EQ(Judge(fault, 100 * kMs), (std::vector<RailAction>{{.what = What::kAsk, .peer = peer}}));
  EXPECT_TRUE(judge_.AnythingToJudge({})) << "a path is held";
  pairs_[0].measures.sent = 12;
  EXPECT_EQ(Reports(Judge(fault, 100 * kMs + kPathFaultHold)), Expected()) << "two probes";
  pairs_[0].measures.sent = 13;
  EXPECT_EQ(Reports(Judge(fault, 100 * kMs + kPathFaultHold)), (Expected{{EvidenceKind::kPathBroken, peer}}));
  EXPECT_EQ(verdict().broken_paths, std::set<NicKey>{peer});
  EXPECT_TRUE(Judge(fault, 300 * kMs + kPathFaultHold).empty());
  EXPECT_EQ(Reports(Judge({}, 400 * kMs + kPathFaultHold)), (Expected{{EvidenceKind::kPathBack, peer}}));
  EXPECT_TRUE(verdict().broken_paths.empty());
  EXPECT_FALSE(judge_.AnyVerdict());
}

TEST_F(RailJudgeTest, APathThatAnswersIsNotPending) {
  const Fault fault = Of(FaultKind::kPath, {{"n1", "r0"}});
  pairs_ = {Pair("n1", PairState::kSilent), Pair("n2", PairState::kUp, 1)};
  Judge(fault, 100 * kMs);
  pairs_[0].state = PairState::kProving;
  EXPECT_TRUE(Judge(fault, 600 * kMs).empty());
  pairs_[0].state = PairState::kSilent;
  pairs_[0].measures.sent = 100;
  EXPECT_EQ(Reports(Judge(fault, 100 * kMs + kPathFaultHold)), Expected()) << "it begins again";
}

TEST_F(RailJudgeTest, AnInconclusiveSilenceThatLastsIsReportedAndRepeated) {
  const NicKey peer = {"n1", "r0"};
  const Fault fault = Of(FaultKind::kInconclusive, {peer, {"n9", "r0"}});
  pairs_ = {Pair("n1", PairState::kSilent)};
  const auto first = Judge(fault, 1000 * kMs);
  EXPECT_EQ(Count(first, What::kSuspect), 1) << "nobody answers the NIC";
  EXPECT_EQ(Count(first, What::kAsk), 2) << "the pair that is not probed, too";
  EXPECT_EQ(Reports(first), Expected());
  EXPECT_EQ(Reports(Judge(fault, 1000 * kMs + kPathFaultHold)), (Expected{{EvidenceKind::kRailInconclusive, peer}}));
  const Nanos reported = 1000 * kMs + kPathFaultHold;
  EXPECT_EQ(Reports(Judge(fault, reported + kInconclusiveInterval - 1)), Expected());
  EXPECT_EQ(Reports(Judge(fault, reported + kInconclusiveInterval)), (Expected{{EvidenceKind::kRailInconclusive, peer}}));
  judge_.Rest();
  EXPECT_EQ(Reports(Judge(fault, reported + 2 * kInconclusiveInterval)), Expected()) << "it must last again";
}

TEST_F(RailJudgeTest, OthersReportsOfAnUnknownPairAreNotInconclusive) {
  const Fault fault = Of(FaultKind::kInconclusive, {{"n9", "r0"}});
  pairs_ = {Pair("n1", PairState::kUp, 1)};
  for (const Nanos now : {1000 * kMs, 9000 * kMs})
    EXPECT_EQ(Judge(fault, now), (std::vector<RailAction>{{.what = What::kAsk, .peer = {"n9", "r0"}}}));
}

TEST_F(RailJudgeTest, ALinkThatIsDownIsEnough) {
  pairs_ = {Pair("n1", PairState::kSilent), Pair("n2", PairState::kSilent)};
  Judge(Unusable(FaultKind::kPort), 100 * kMs);
  EXPECT_TRUE(judge_.SetLargeLost("r0", {{"n1", "r0"}}));
  EXPECT_FALSE(judge_.SetLargeLost("r0", {{"n1", "r0"}}));
  judge_.LinkDown("r0");
  EXPECT_FALSE(verdict().silent || verdict().port_dead);
  EXPECT_TRUE(verdict().large_lost.empty());
  EXPECT_FALSE(judge_.AnythingToJudge({}));
  judge_.Remove("r0");
  EXPECT_TRUE(judge_.verdicts().empty());
}

}  // namespace
}  // namespace r2cc::health
