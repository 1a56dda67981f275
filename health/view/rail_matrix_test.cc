#include "health/view/rail_matrix.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace r2cc::health {
namespace {

std::string Name(int node) { return "n" + std::to_string(node); }
NicKey Port(int node, int rail = 0) { return {Name(node), "r" + std::to_string(rail)}; }

// A node with two sound NICs that takes probes.
NodeState Node(int node, PairReports pairs = {}) {
  NodeState state;
  state.node = Name(node);
  state.epoch = {1, 1};
  state.probe_nonce = 100 + static_cast<uint64_t>(node);
  for (int rail = 0; rail < 2; ++rail) {
    NicStatus nic;
    nic.identity.name = Port(node, rail).nic;
    nic.state = NicState::kHealthy;
    nic.link_up = true;
    state.nics.push_back(nic);
  }
  state.pairs = std::move(pairs);
  return state;
}

void Put(ClusterView* view, const std::string& own, NodeState state) {
  if (state.node == own)
    view->SetOwn(std::move(state), 0);
  else
    EXPECT_EQ(view->Merge(std::move(state), 0), ClusterView::Merged::kNew);
}

RailPairStatus Pair(const NicKey& own, const NicKey& peer, PairState state) {
  RailPairStatus pair;
  pair.key = {own, peer};
  pair.active = true;
  pair.state = state;
  pair.verdict = pair.fresh_verdict = VerdictOf(state);
  return pair;
}

TEST(RailMatrix, AnAnswerFromBeforeTheSilenceShowsNothing) {
  RailFindings verdicts;
  RailPairStatus pair = Pair(Port(0), Port(1), PairState::kUp);
  pair.answered_sent = 50;
  EXPECT_EQ(VerdictNow(pair, verdicts), PairVerdict::kAnswering);
  verdicts["r0"] = {.silent = true, .silent_since = 60};
  EXPECT_EQ(VerdictNow(pair, verdicts), PairVerdict::kUnknown);
  pair.answered_sent = 60;
  EXPECT_EQ(VerdictNow(pair, verdicts), PairVerdict::kAnswering);
  pair.fresh_verdict = PairVerdict::kSilent;
  pair.answered_sent = 50;
  EXPECT_EQ(VerdictNow(pair, verdicts), PairVerdict::kSilent);
}

TEST(RailMatrix, APeerThatNeverAnswersOneNicAndAnswersAnotherIsReported) {
  std::vector<RailPairStatus> pairs = {Pair(Port(0, 0), Port(1, 0), PairState::kUnknown), Pair(Port(0, 0), Port(2, 0), PairState::kUnknown),
                                       Pair(Port(0, 1), Port(1, 1), PairState::kUp)};
  for (RailPairStatus& pair : pairs) pair.measures.sent = kFirstAnswerProbes;
  EXPECT_EQ(NeverAnswered("r0", pairs, kFirstAnswerWait - 1), std::vector<NicKey>());
  EXPECT_EQ(NeverAnswered("r0", pairs, kFirstAnswerWait), std::vector<NicKey>{Port(1, 0)}) << "n2 may be asleep";
  pairs[0].measures.sent = kFirstAnswerProbes - 1;
  EXPECT_EQ(NeverAnswered("r0", pairs, kFirstAnswerWait), std::vector<NicKey>());
  pairs[0].measures.sent = kFirstAnswerProbes;
  pairs[1].state = PairState::kUp;
  EXPECT_EQ(NeverAnswered("r0", pairs, kFirstAnswerWait), std::vector<NicKey>()) << "somebody answers";
}

TEST(RailMatrix, HoldsTheReportsOfTheNodesThatSilenceJoinsToThisOne) {
  ClusterView view("n0");
  Put(&view, "n0", Node(0));
  // n0 - n1 - n2 - n3 are silent to each other in turn; n4 and n5 are sound and apart.
  Put(&view, "n0", Node(1, {{"r0", Port(2), true}}));
  Put(&view, "n0", Node(2, {{"r0", Port(3), true}}));
  Put(&view, "n0", Node(3, {{"r0", Port(4), false}}));
  Put(&view, "n0", Node(4, {{"r0", Port(5), false}}));
  Put(&view, "n0", Node(5));
  const RailMatrix matrix("n0", {}, &view);
  const ProbeMatrix made = matrix.Matrix({Pair(Port(0), Port(1), PairState::kSilent)}, {});
  EXPECT_EQ(made.Of(Port(0)).at(Port(1)), PairVerdict::kSilent);
  EXPECT_EQ(made.Of(Port(1)).at(Port(2)), PairVerdict::kSilent);
  EXPECT_EQ(made.Of(Port(2)).at(Port(3)), PairVerdict::kSilent);
  EXPECT_FALSE(made.Of(Port(3)).contains(Port(4))) << "two steps away is far enough";
  EXPECT_FALSE(made.Of(Port(4)).contains(Port(5)));
}

TEST(RailMatrix, ThisNodesOwnReportsOfItsPairsWin) {
  ClusterView view("n0");
  Put(&view, "n0", Node(0));
  Put(&view, "n0", Node(1, {{"r0", Port(0), false}}));
  const RailMatrix matrix("n0", {}, &view);
  const auto joined = [&](PairState own) {
    return matrix.Matrix({Pair(Port(0), Port(1), own)}, {{"r0", {.silent = true, .silent_since = 1}}}).Of(Port(0));
  };
  EXPECT_EQ(joined(PairState::kSilent).at(Port(1)), PairVerdict::kSilent);
  // The own answer is old, and the other end may not have asked since.
  EXPECT_EQ(joined(PairState::kUp).at(Port(1)), PairVerdict::kUnknown);
  EXPECT_EQ(joined(PairState::kUnknown).at(Port(1)), PairVerdict::kAnswering) << "it was never asked from here";
}

TEST(RailMatrix, KnowsWhatNeedsNoVerdictAndWhatIsCabled) {
  ClusterView view("n0");
  NodeState own = Node(0);
  own.nics[1].port_dead = true;  // as reported by this node: the verdict must not prove itself
  Put(&view, "n0", own);
  NodeState other = Node(1);
  other.nics[0].link_up = false;
  other.nics[1].port_dead = true;
  Put(&view, "n0", other);
  NodeState drilled = Node(2);
  drilled.nics[0].drill_failed = true;
  Put(&view, "n0", drilled);
  const ProbeMatrix made = RailMatrix("n0", {{"r0", Port(1)}}, &view).Matrix({}, {});
  EXPECT_TRUE(made.IsDown(Port(1, 0)) && made.IsDown(Port(2, 0)));
  EXPECT_FALSE(made.IsDown(Port(0, 0)) || made.IsDown(Port(1, 1)));
  EXPECT_TRUE(made.ReportsItselfDead(Port(1, 1)));
  EXPECT_FALSE(made.ReportsItselfDead(Port(0, 1)));
  EXPECT_TRUE(made.IsCable(Port(0, 0), Port(1, 0)));
}

TEST(RailMatrix, AnUnreachableNodesReportsDoNotCount) {
  ClusterView view("n0", /*lease=*/10);
  Put(&view, "n0", Node(0));
  Put(&view, "n0", Node(1, {{"r0", Port(0), true}}));
  const RailMatrix matrix("n0", {}, &view);
  EXPECT_TRUE(matrix.Matrix({}, {}).Of(Port(0)).contains(Port(1)));
  view.Tick(100);
  EXPECT_FALSE(matrix.Matrix({}, {}).Of(Port(0)).contains(Port(1)));
}

TEST(RailMatrix, ReportsSilentPairsFirstAndWhatJobsUse) {
  ClusterView view("n0");
  RailPairStatus unused = Pair(Port(0), Port(3), PairState::kUp);
  unused.active = false;
  const std::vector<RailPairStatus> pairs = {Pair(Port(0), Port(1), PairState::kUp), unused, Pair(Port(0), Port(4), PairState::kUnknown),
                                             Pair(Port(0), Port(2), PairState::kSilent)};
  const RailMatrix matrix("n0", {}, &view);
  EXPECT_EQ(matrix.Reports(pairs, {{"r0", {.broken_paths = {Port(2)}}}}),
            (PairReports{{"r0", Port(2), true, true}, {"r0", Port(1), false}}));
}

TEST(RailMatrix, SilenceThatADeadPortExplainsIsNotReported) {
  ClusterView view("n0");
  NodeState other = Node(1);
  other.nics[0].port_dead = true;
  Put(&view, "n0", other);
  NodeState failed = Node(2);
  failed.nics[0].state = NicState::kFailed;
  Put(&view, "n0", failed);
  const std::vector<RailPairStatus> pairs = {Pair(Port(0), Port(1), PairState::kSilent), Pair(Port(0), Port(2), PairState::kSilent),
                                             Pair(Port(0, 1), Port(2, 1), PairState::kSilent)};
  const RailMatrix matrix("n0", {}, &view);
  EXPECT_EQ(matrix.Reports(pairs, {{"r1", {.silent = true, .port_dead = true}}}), (PairReports{{"r0", Port(2), true}}));
}

TEST(RailMatrix, ReportsHaveALimitAndSilenceComesFirst) {
  ClusterView view("n0");
  std::vector<RailPairStatus> pairs;
  for (int peer = 1; peer <= static_cast<int>(kPairReportsMax) + 5; ++peer) pairs.push_back(Pair(Port(0), Port(peer), PairState::kUp));
  pairs.push_back(Pair(Port(0), Port(0, 1), PairState::kSilent));
  const PairReports reports = RailMatrix("n0", {}, &view).Reports(pairs, {});
  EXPECT_EQ(reports.size(), kPairReportsMax);
  EXPECT_EQ(reports.silent(), 1u);
}

// The view that each of `nodes` has, in which n1 reports that it is silent to n2.
int LookedAtBy(int nodes, const NodeState& reporter, const NodeState& suspected) {
  int looking = 0;
  for (int node = 0; node < nodes; ++node) {
    ClusterView view(Name(node));
    for (int other = 0; other < nodes; ++other) Put(&view, Name(node), other == 1 ? reporter : other == 2 ? suspected : Node(other));
    const RailMatrix::Suspected found = RailMatrix(Name(node), {}, &view).FindSuspected();
    EXPECT_EQ(found.here, node == 2) << node;
    if (found.ports.empty()) continue;
    EXPECT_NE(node, 1);
    EXPECT_NE(node, 2);
    EXPECT_EQ(found.ports, (std::set<NicKey>{Port(1), Port(2)}));
    ++looking;
  }
  return looking;
}

TEST(RailMatrix, ThreeOthersLookAtASilentPair) {
  const NodeState reporter = Node(1, {{"r0", Port(2), true}});
  EXPECT_EQ(LookedAtBy(20, reporter, Node(2)), 3);
  EXPECT_EQ(LookedAtBy(4, reporter, Node(2)), 2) << "there are no more";
}

TEST(RailMatrix, NobodyLooksAtASilenceThatIsExplained) {
  const NodeState reporter = Node(1, {{"r0", Port(2), true}});
  NodeState dead = Node(2);
  dead.nics[0].port_dead = true;
  EXPECT_EQ(LookedAtBy(20, reporter, dead), 0);
  dead = Node(2);
  dead.nics[0].state = NicState::kFailed;  // for want of anybody who answers: its fault may be elsewhere
  EXPECT_EQ(LookedAtBy(20, reporter, dead), 3);
}

TEST(RailMatrix, NobodyLooksWhereBothEndsReportEnough) {
  const auto reports = [](int peers, bool silent) {
    PairReports made;
    if (silent) made.push_back({"r0", Port(2), true});
    for (int peer = 10; peer < 10 + peers; ++peer) made.push_back({"r0", Port(peer), false});
    return made;
  };
  EXPECT_EQ(LookedAtBy(20, Node(1, reports(3, true)), Node(2, reports(4, false))), 0);
  EXPECT_EQ(LookedAtBy(20, Node(1, reports(3, true)), Node(2, reports(3, false))), 3);
}

TEST(RailMatrix, ANodeWithoutProbesOrWithoutTheRailDoesNotVolunteer) {
  ClusterView view("n0");
  NodeState own = Node(0);
  Put(&view, "n0", own);
  const RailMatrix matrix("n0", {}, &view);
  EXPECT_TRUE(matrix.Volunteers(Port(1), Port(2)));
  own.nics[0].link_up = false;
  ++own.epoch.counter;
  view.SetOwn(own, 0);
  EXPECT_FALSE(matrix.Volunteers(Port(1), Port(2)));
  EXPECT_TRUE(matrix.Volunteers(Port(1, 1), Port(2, 1)));
  own.probe_nonce = 0;
  ++own.epoch.counter;
  view.SetOwn(own, 0);
  EXPECT_FALSE(matrix.Volunteers(Port(1, 1), Port(2, 1)));
}

}  // namespace
}  // namespace r2cc::health
