#include "base/log.h"
#include "daemon/rails/rail_watch_rig.h"

namespace r2cc::daemon {
namespace {

TEST_F(RailWatchTest, AHealthyClusterReportsNothing) {
  Make(4, 4);
  core_.Advance(60'000 * kMs);
  EXPECT_EQ(EvidenceCount(), 0U);
  EXPECT_EQ(nodes_[0]->own.pairs.size(), 12U);
  EXPECT_EQ(nodes_[0]->own.nics[0].probe_port, 7460);
}

// Five times a second, as the other end pings as often; a little more where the jitter lets both begin.
TEST_F(RailWatchTest, AQuietWatchWakesUpOnlyToPing) {
  Make(2, 8);
  const int before = nodes_[0]->executor.timers_run();
  const uint64_t sent_before = nodes_[0]->watch->counts().sent;
  core_.Advance(10'000 * kMs);
  const int pings = static_cast<int>(nodes_[0]->watch->counts().sent - sent_before);
  EXPECT_LE(nodes_[0]->executor.timers_run() - before, pings / 8 + 10);
  EXPECT_LE(nodes_[0]->executor.timers_run() - before, 80);
}

TEST_F(RailWatchTest, ANodeThatIsAloneSleeps) {
  Make(1, 8);
  const int before = nodes_[0]->executor.timers_run();
  core_.Advance(10'000 * kMs);
  EXPECT_LE(nodes_[0]->executor.timers_run() - before, 15);
}

TEST_F(RailWatchTest, AComplaintIsLookedIntoAtOnce) {
  Make(2, 1);
  core_.Advance(2000 * kMs);
  const uint64_t before = nodes_[0]->watch->counts().sent;
  nodes_[0]->watch->Suspect("rail0");
  core_.Advance(70 * kMs);
  EXPECT_GE(nodes_[0]->watch->counts().sent - before, 3U);
}

TEST_F(RailWatchTest, ADeadPortIsFailedByItsOwnDaemonAndExplainedByAll) {
  Make(4, 4);
  BreakPort(1, 2);
  core_.Advance(500 * kMs);
  ASSERT_EQ(KindsOf(1, 2), std::vector<EvidenceKind>{EvidenceKind::kRailSilent});
  EXPECT_EQ(
      nodes_[1]->seen[0].detail,
      "port of n1/rail2 (NIC, cable or switch port): silent to n0/rail2, n2/rail2, n3/rail2; n0/rail2, n2/rail2, n3/rail2 answer others");
  core_.Advance(5000 * kMs);
  EXPECT_EQ(EvidenceCount(), 1U);
  EXPECT_EQ(nodes_[1]->watch->Verdict("rail2").kind, health::FaultKind::kPort);
  // The other ends locate the fault, although nobody reports the port any more.
  for (const int node : {0, 2, 3}) {
    EXPECT_EQ(nodes_[node]->watch->Verdict("rail2").kind, health::FaultKind::kPeers) << node;
    EXPECT_EQ(nodes_[node]->watch->Verdict("rail2").peers, std::vector<NicKey>{Port(1, 2)});
  }
  Mend();
  core_.Advance(2000 * kMs);
  EXPECT_EQ(KindsOf(1, 2), (std::vector<EvidenceKind>{EvidenceKind::kRailSilent, EvidenceKind::kRailAnswers}));
  EXPECT_EQ(EvidenceCount(), 2U);
}

// The port's own node is the last to notice, and its earlier packets are no answer.
TEST_F(RailWatchTest, ADeadPortThatIsReportedToTheOthersFirstStaysFailed) {
  for (int phase = 0; phase < 20; ++phase) {
    SCOPED_TRACE(phase);
    Make(4, 4);
    nodes_[1]->watch->SetJobPeers({});
    core_.Advance((2000 + 7 * phase) * kMs);
    BreakPort(1, 2);
    core_.Advance(6000 * kMs);
    EXPECT_EQ(KindsOf(1, 2), std::vector<EvidenceKind>{EvidenceKind::kRailSilent});
    EXPECT_EQ(nodes_[1]->watch->Verdict("rail2").kind, health::FaultKind::kPort);
    Mend();
    core_.Advance(3000 * kMs);
    EXPECT_EQ(KindsOf(1, 2), (std::vector<EvidenceKind>{EvidenceKind::kRailSilent, EvidenceKind::kRailAnswers}));
    EXPECT_EQ(EvidenceCount(), 2U);
    for (auto& node : nodes_) node->watch->Stop();
    nodes_.clear();
  }
}

TEST_F(RailWatchTest, APathIsReportedAtBothEndsAfterAWhile) {
  Make(4, 2);
  BreakPath(Address(0, 1), Address(3, 1));
  core_.Advance(900 * kMs);
  EXPECT_EQ(EvidenceCount(), 0U);  // it might become a port's
  core_.Advance(1500 * kMs);
  EXPECT_EQ(KindsOf(0, 1), std::vector<EvidenceKind>{EvidenceKind::kPathBroken});
  EXPECT_EQ(KindsOf(3, 1), std::vector<EvidenceKind>{EvidenceKind::kPathBroken});
  EXPECT_EQ(nodes_[0]->seen[0].peer, Port(3, 1));
  EXPECT_EQ(BrokenPaths(0), std::vector<NicKey>{Port(3, 1)});
  EXPECT_EQ(BrokenPaths(3), std::vector<NicKey>{Port(0, 1)});
  EXPECT_TRUE(BrokenPaths(1).empty());
  Mend();
  core_.Advance(2000 * kMs);
  EXPECT_EQ(KindsOf(0, 1), (std::vector<EvidenceKind>{EvidenceKind::kPathBroken, EvidenceKind::kPathBack}));
  EXPECT_EQ(EvidenceCount(), 4U);
  EXPECT_TRUE(BrokenPaths(0).empty());
}

TEST_F(RailWatchTest, TwoNodesAloneAreInconclusiveAndNameWhatIsMissing) {
  Make(2, 2);
  BreakPort(1, 0);
  core_.Advance(5000 * kMs);
  const auto kinds = KindsOf(0, 0);
  ASSERT_GE(kinds.size(), 2U);  // repeated, as inconclusive reports are forgotten
  EXPECT_EQ(kinds.front(), EvidenceKind::kRailInconclusive);
  EXPECT_EQ(kinds.back(), EvidenceKind::kRailInconclusive);
  EXPECT_NE(nodes_[0]->seen[0].detail.find("another node that probes both"), std::string::npos);
}

TEST_F(RailWatchTest, APortThatWasDeadFromTheBeginningIsInconclusive) {
  BreakPort(1, 0);
  Make(3, 2);
  EXPECT_EQ(EvidenceCount(), 0U);
  core_.Advance(6000 * kMs);
  ASSERT_FALSE(KindsOf(1, 0).empty());
  EXPECT_EQ(KindsOf(1, 0).front(), EvidenceKind::kRailInconclusive);
  EXPECT_EQ(nodes_[1]->seen[0].detail,
            "no probe was ever answered by a peer of n1/rail0 (n0/rail0 and 1 more were asked): a dead port, another VLAN, or a firewall "
            "that drops UDP");
  EXPECT_TRUE(KindsOf(0, 0).empty());  // it answers n2
  Mend();
  const size_t count = KindsOf(1, 0).size();
  core_.Advance(10'000 * kMs);
  EXPECT_LE(KindsOf(1, 0).size(), count + 1);
}

TEST_F(RailWatchTest, TheOnlyRailOfANodeIsFailedByMessagesOfTheOthers) {
  Make(4, 1);
  ExchangeMessages();
  core_.Advance(5000 * kMs);
  EXPECT_EQ(EvidenceCount(), 0U);
  BreakPort(1, 0);
  core_.Advance(3000 * kMs);
  EXPECT_EQ(KindsOf(1, 0), std::vector<EvidenceKind>{EvidenceKind::kRailSilent});
  EXPECT_EQ(EvidenceCount(), 1U) << "the three others answer each other";
  EXPECT_NE(nodes_[1]->seen[0].detail.find("port of n1/rail0"), std::string::npos) << nodes_[1]->seen[0].detail;
  EXPECT_EQ(nodes_[1]->watch->Verdict("rail0").kind, health::FaultKind::kPort);
  Mend();
  core_.Advance(5000 * kMs);
  EXPECT_EQ(KindsOf(1, 0), (std::vector<EvidenceKind>{EvidenceKind::kRailSilent, EvidenceKind::kRailAnswers}));
}

TEST_F(RailWatchTest, TwoNodesWithOneRailAreInconclusive) {
  Make(2, 1);
  ExchangeMessages();
  core_.Advance(5000 * kMs);
  BreakPort(1, 0);
  core_.Advance(6000 * kMs);
  for (int node = 0; node < 2; ++node) {
    ASSERT_FALSE(KindsOf(node, 0).empty());
    for (const EvidenceKind kind : KindsOf(node, 0)) EXPECT_EQ(kind, EvidenceKind::kRailInconclusive);
    EXPECT_NE(nodes_[node]->seen[0].detail.find("another node that probes both"), std::string::npos);
  }
}

TEST_F(RailWatchTest, ADirectCableFailsAtBothEnds) {
  Make(2, 2, {{"rail0", Port(1, 0)}});
  BreakPath(Address(0, 0), Address(1, 0));
  core_.Advance(600 * kMs);
  ASSERT_EQ(KindsOf(0, 0), std::vector<EvidenceKind>{EvidenceKind::kRailSilent});
  ASSERT_EQ(KindsOf(1, 0), std::vector<EvidenceKind>{EvidenceKind::kRailSilent});
  EXPECT_EQ(nodes_[0]->seen[0].detail, "cable between n0/rail0 and n1/rail0, or the port at one of its ends");
}

// Neither end's failure explains the other's, whichever is found first.
TEST_F(RailWatchTest, ACableThatIsSilentStaysFailedAtBothEnds) {
  for (int phase = 0; phase < 20; ++phase) {
    SCOPED_TRACE(phase);
    Make(2, 3, {{"rail0", Port(1, 0)}});
    for (auto& node : nodes_) node->watch->SetJobPeers({});
    core_.Advance((1000 + 7 * phase) * kMs);
    BreakPath(Address(0, 0), Address(1, 0));
    core_.Advance(4000 * kMs);
    for (const int node : {0, 1}) {
      EXPECT_EQ(KindsOf(node, 0), std::vector<EvidenceKind>{EvidenceKind::kRailSilent});
      EXPECT_EQ(nodes_[node]->watch->Verdict("rail0").kind, health::FaultKind::kCable);
    }
    Mend();
    core_.Advance(3000 * kMs);
    for (const int node : {0, 1})
      EXPECT_EQ(KindsOf(node, 0), (std::vector<EvidenceKind>{EvidenceKind::kRailSilent, EvidenceKind::kRailAnswers}));
    for (auto& node : nodes_) node->watch->Stop();
    nodes_.clear();
  }
}

TEST_F(RailWatchTest, AnEndThatHasFailedByItselfDoesNotSilenceTheOther) {
  Make(2, 2, {{"rail0", Port(1, 0)}});
  // n0 reports it first.
  nodes_[0]->own.nics[0].state = health::NicState::kFailed;
  BreakPath(Address(0, 0), Address(1, 0));
  Publish(nodes_[0].get());
  core_.Advance(600 * kMs);
  EXPECT_EQ(KindsOf(1, 0), std::vector<EvidenceKind>{EvidenceKind::kRailSilent});
}

TEST_F(RailWatchTest, ADaemonThatIsGoneIsNoDeadRail) {
  Make(4, 2);
  nodes_[2]->watch->Stop();
  core_.Advance(10'000 * kMs);
  EXPECT_EQ(EvidenceCount(), 0U);
}

TEST_F(RailWatchTest, AFrozenDaemonIsNoDeadRail) {
  Make(4, 2);
  for (const int rail : {0, 1}) net_.Freeze(Address(2, rail));
  core_.Advance(3000 * kMs);
  for (const int rail : {0, 1}) net_.Thaw(Address(2, rail));
  core_.Advance(3000 * kMs);
  EXPECT_EQ(EvidenceCount(), 0U);
}

TEST_F(RailWatchTest, ADownLinkIsNotAskedForAndBeginsAgain) {
  Make(3, 2);
  nodes_[0]->watch->SetLink("rail0", false);
  Publish(nodes_[0].get());
  core_.Advance(2000 * kMs);
  EXPECT_EQ(nodes_[0]->own.nics[0].probe_port, 0);
  EXPECT_EQ(EvidenceCount(), 0U);
  nodes_[0]->watch->SetLink("rail0", true);
  core_.Advance(2000 * kMs);
  EXPECT_EQ(nodes_[0]->own.nics[0].probe_port, 7460);
  EXPECT_EQ(nodes_[0]->own.pairs.size(), 4U);
  EXPECT_EQ(EvidenceCount(), 0U);
}

TEST_F(RailWatchTest, OthersLendTheirEyesWhereNoJobUsesThem) {
  Make(4, 2);
  // Only n0 and n1 share a job; n2 and n3 probe in turn, and report no working pairs.
  nodes_[0]->watch->SetJobPeers({{"uid 0", {"n1"}}});
  nodes_[1]->watch->SetJobPeers({{"uid 0", {"n0"}}});
  nodes_[2]->watch->SetJobPeers({});
  nodes_[3]->watch->SetJobPeers({});
  for (auto& node : nodes_) Publish(node.get());
  core_.Advance(2000 * kMs);
  EXPECT_TRUE(nodes_[2]->own.pairs.empty());
  BreakPath(Address(0, 1), Address(1, 1));
  core_.Advance(4000 * kMs);
  EXPECT_EQ(KindsOf(0, 1), std::vector<EvidenceKind>{EvidenceKind::kPathBroken});
  EXPECT_EQ(KindsOf(1, 1), std::vector<EvidenceKind>{EvidenceKind::kPathBroken});
  EXPECT_EQ(nodes_[2]->own.pairs.size(), 2U);
}

TEST_F(RailWatchTest, ATakenPortIsNoReasonToGiveUp) {
  health::FakeDatagrams other(&net_);
  const auto taken = other.Open({"eth0", Address(0, 0), 7460}, {[](const auto&) {}, [](const auto&) {}});
  ASSERT_TRUE(taken.ok());
  Make(2, 2);
  EXPECT_NE(nodes_[0]->own.nics[0].probe_port, 7460);
  EXPECT_NE(nodes_[0]->own.nics[0].probe_port, 0);
  EXPECT_EQ(nodes_[0]->own.pairs.size(), 2U);
}

// An attacker that guesses two addresses and ports can forge that nobody listens at the other end. That is no answer of a dead port.
TEST_F(RailWatchTest, ForgedRefusalsKeepNoDeadPortAlive) {
  Make(4, 2);
  BreakPort(1, 0);
  for (int i = 0; i < 100; ++i) {
    for (const int other : {0, 2, 3}) {
      net_.ForgeRefusal({Address(other, 0), 7460}, {Address(1, 0), 7460});
      net_.ForgeRefusal({Address(1, 0), 7460}, {Address(other, 0), 7460});
    }
    core_.Advance(10 * kMs);
  }
  EXPECT_EQ(KindsOf(1, 0), std::vector<EvidenceKind>{EvidenceKind::kRailSilent});
  for (const int other : {0, 2, 3}) EXPECT_EQ(nodes_[other]->watch->Verdict("rail0").kind, health::FaultKind::kPeers) << other;
  EXPECT_GE(nodes_[1]->watch->sockets().icmp_errors(), 300U);
}

// A flood that drives out answers is no silence: nobody is judged by what this kernel dropped.
TEST_F(RailWatchTest, AFloodFailsNoNic) {
  Make(4, 2);
  net_.Flood(Address(1, 0));
  core_.Advance(10'000 * kMs);
  EXPECT_TRUE(KindsOf(1, 0).empty());
  const health::NicStatus& nic = nodes_[1]->own.nics[0];
  EXPECT_EQ(nic.probe_trouble, "not judged by probes: its own kernel drops datagrams (a flood?)");
  EXPECT_EQ(nodes_[1]->own.nics[1].probe_trouble, "");
  net_.EndFlood(Address(1, 0));
  core_.Advance(3000 * kMs);
  Publish(nodes_[1].get());
  core_.Advance(kMs);
  EXPECT_EQ(nodes_[1]->own.nics[0].probe_trouble, "");
  EXPECT_TRUE(KindsOf(1, 0).empty());
  BreakPort(1, 0);
  core_.Advance(1000 * kMs);
  EXPECT_EQ(KindsOf(1, 0), std::vector<EvidenceKind>{EvidenceKind::kRailSilent}) << "and now it is judged again";
}

// Two other nodes, or senders with their names, report again and again silence of a NIC that answers every probe.
TEST_F(RailWatchTest, ForgedReportsFailNoNicThatAnswers) {
  for (const bool jobs : {true, false}) {
    Make(3, 2);
    if (!jobs)
      for (auto& node : nodes_) node->watch->SetJobPeers({});
    core_.Advance(2000 * kMs);
    for (int round = 0; round < 50; ++round) {
      for (const int liar : {1, 2}) {
        health::NodeState forged = nodes_[liar]->own;
        forged.epoch.counter += 1000 + static_cast<uint64_t>(round);
        forged.pairs = {{"rail0", Port(0, 0), true, false}, {"rail0", Port(3 - liar, 0), false, false}};
        nodes_[0]->view->Merge(forged, core_.Now());
      }
      nodes_[0]->watch->OnView();
      core_.Advance(100 * kMs);
      EXPECT_EQ(nodes_[0]->watch->Verdict("rail0").kind, health::FaultKind::kPort) << "by words alone";
    }
    for (const EvidenceKind kind : KindsOf(0, 0)) EXPECT_NE(kind, EvidenceKind::kRailSilent) << jobs;
    for (auto& node : nodes_) node->watch->Stop();
    nodes_.clear();
  }
}

// Nobody probes the pair that another node complains of, again and again. It makes this one look, and nothing else.
TEST_F(RailWatchTest, ReportsOfAPairThatNobodyProbesAreNotInconclusive) {
  Make(4, 2);
  core_.Advance(2000 * kMs);
  for (int round = 0; round < 30; ++round) {
    health::NodeState liar = nodes_[3]->own;
    liar.epoch.counter += 1000 + static_cast<uint64_t>(round);
    liar.nics.push_back({.identity = {.name = "ghost", .interface = "eth9", .address = "10.9.9.9"}, .state = health::NicState::kHealthy});
    for (int rail = 0; rail < 2; ++rail) liar.pairs.push_back({"ghost", Port(0, rail), true, false});
    nodes_[0]->view->Merge(liar, core_.Now());
    nodes_[0]->watch->OnView();
    core_.Advance(500 * kMs);
  }
  EXPECT_EQ(KindsOf(0, 0), std::vector<EvidenceKind>()) << nodes_[0]->seen.front().detail;
  EXPECT_EQ(KindsOf(0, 1), std::vector<EvidenceKind>());
}

TEST_F(RailWatchTest, SilenceEndsAMinuteAfterTheLastWitnessHasGone) {
  Make(3, 2);
  BreakPort(0, 0);
  core_.Advance(2000 * kMs);
  ASSERT_EQ(KindsOf(0, 0), std::vector<EvidenceKind>{EvidenceKind::kRailSilent});
  core_.Advance(120'000 * kMs);
  ASSERT_EQ(KindsOf(0, 0), std::vector<EvidenceKind>{EvidenceKind::kRailSilent}) << "while the others are there";
  for (const int gone : {1, 2}) nodes_[gone]->watch->Stop();
  Mend();
  core_.Advance(50'000 * kMs);
  EXPECT_EQ(KindsOf(0, 0), std::vector<EvidenceKind>{EvidenceKind::kRailSilent});
  core_.Advance(100'000 * kMs);
  EXPECT_EQ(KindsOf(0, 0), (std::vector<EvidenceKind>{EvidenceKind::kRailSilent, EvidenceKind::kRailAnswers}));
}

TEST_F(RailWatchTest, ARailThatCannotBeProbedReportsWhy) {
  health::FakeDatagrams datagrams(&net_);
  health::ClusterView view("n9");
  RailWatch watch("n9", {{.name = "rail0", .interface = "eth0", .address = ""}},
                  [] {
                    return health::ProbeSecret{0, 1};
                  },
                  {}, &view, {&core_, &datagrams}, {[](const health::Evidence&) {}, [] {}});
  watch.SetLink("rail0", true);
  std::vector<std::string> lines;
  const ScopedLogCapture capture([&](Severity level, const std::string& line) {
    if (level == Severity::kWarning) lines.push_back(line);
  });
  watch.Start(7460);
  core_.Advance(10'000 * kMs);
  EXPECT_EQ(watch.Report().nics.at("rail0").trouble, "not probed: it has no address");
  EXPECT_EQ(lines, std::vector<std::string>{"a NIC's rail is not probed nic=rail0 reason=\"it has no address\""}) << "once";
  watch.SetLink("rail0", false);
  EXPECT_EQ(watch.Report().nics.at("rail0").trouble, "") << "there is nothing to probe";
}

TEST_F(RailWatchTest, ANicThatGoesIsNotProbedAndOneThatComesIs) {
  Make(2, 2);
  core_.Advance(2000 * kMs);
  ASSERT_EQ(nodes_[0]->watch->Pairs().size(), 2U);
  nodes_[0]->watch->Remove("rail1");
  EXPECT_EQ(nodes_[0]->watch->Pairs().size(), 1U) << "at once";
  EXPECT_FALSE(nodes_[0]->watch->Report().nics.contains("rail1"));
  EXPECT_FALSE(net_.IsOpen({Address(0, 1), 7460}));
  nodes_[0]->watch->Suspect("rail1");
  nodes_[0]->watch->SetLink("rail1", true);
  core_.Advance(2000 * kMs);
  nodes_[0]->watch->Add({.name = "rail1", .interface = "eth1", .address = Address(0, 1)});
  nodes_[0]->watch->SetLink("rail1", true);
  core_.Advance(2000 * kMs);
  EXPECT_TRUE(net_.IsOpen({Address(0, 1), 7460}));
  const auto pairs = nodes_[0]->watch->Pairs();
  ASSERT_EQ(pairs.size(), 2U);
  EXPECT_EQ(pairs[1].key.own.nic, "rail1");
  EXPECT_GT(pairs[1].measures.answered, 0U);
}

}  // namespace
}  // namespace r2cc::daemon
