// The nodes that a daemon calls directly, in addition to the peers of its configuration.
#include <algorithm>

#include "daemon/wiring_rig.h"

namespace r2cc::daemon {
namespace {

class PeerSetTest : public WiringTest {
 protected:
  void StoreAnnounces(const std::string& node, const std::string& address) {
    v1::NodeView view = PeerView(1, v1::HEALTHY);
    view.set_node(node);
    view.set_peer_address(address);
    store_->Change("/r2cc/nodes/" + node, view.SerializeAsString());
    Settle();
  }
  void JobTalksTo(const std::string& node) {
    plan::EvidenceRecord record{};
    record.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kFlowOpened);
    record.time_ns = core_.Now();
    plan::SetText(node, record.peer_node);
    jobs_->Deliver(1, {record});
    core_.Advance(plan::kPageHeartbeatInterval);
  }
  std::vector<std::string> Called() const {
    std::vector<std::string> called;
    for (const PeerSpec& peer : peers_->peers()) called.push_back(peer.node + " " + peer.address);
    return called;
  }
  const std::vector<std::string> configured_ = {"n1 h1:7460", "n2 h2:7460"};
};

TEST_F(PeerSetTest, NodesOfAJobAreCalledWhereTheStoreKnowsThem) {
  EXPECT_EQ(Called(), configured_);
  StoreAnnounces("n7", "h7:7460");
  StoreAnnounces("n8", "");
  StoreAnnounces("a0", "h0:7460");
  jobs_->Attach(1, 4711, JobWithRails({"10.0.0.1"}));
  for (const char* node : {"n7", "n8", "n9", "a0", "n1"}) JobTalksTo(node);
  EXPECT_EQ(Called(), (std::vector<std::string>{"n1 h1:7460", "n2 h2:7460", "n7 h7:7460"}))
      << "a0 calls us; the addresses of n8 and n9 are unknown";
  EXPECT_EQ(Status().peers_size(), 3);

  jobs_->End(1);
  core_.Advance(plan::kPageHeartbeatInterval);
  EXPECT_EQ(Called(), configured_);
}

TEST_F(PeerSetTest, AJobThatNamesManyNodesMakesABoundedNumberOfCalls) {
  jobs_->Attach(1, 4711, JobWithRails({"10.0.0.1"}));
  for (int node = 0; node < 100; ++node) {
    StoreAnnounces(absl::StrCat("o", node), absl::StrCat("h", node, ":7460"));
    JobTalksTo(absl::StrCat("o", node));
  }
  EXPECT_EQ(Called().size(), configured_.size() + PeerSet::kJobPeersMax);
}

// A cluster that starts makes no plan for each node that turns up.
// A sender with another text each time, from another port each time, would fill the log, and hide the reports of others.
TEST_F(PeerSetTest, OneNodesReportsFillNoLogAndHideNobodyElses) {
  v1::NodeView view = PeerView(1, v1::HEALTHY);
  testing::internal::CaptureStderr();
  for (uint32_t i = 0; i < 20'000; ++i) {
    view.set_protocol(1000 + i);
    wiring_->backend().ReceiveView(view, 3, {.address = absl::StrCat("h1:", i % 60'000)});
    if (i % 100 == 0) Settle();
  }
  Settle();
  view.set_node("n2");
  wiring_->backend().ReceiveView(view, 4, {.address = "h2:7460"});
  Settle();
  const std::string log = testing::internal::GetCapturedStderr();
  size_t lines = 0;
  for (size_t at = 0; (at = log.find("a view was refused", at)) != std::string::npos; ++at) ++lines;
  EXPECT_LE(lines, 40u) << log.substr(0, 2000);
  EXPECT_NE(log.find("from=h2:7460"), std::string::npos);
}

TEST_F(PeerSetTest, HowFarAnothersClockIsAhead) {
  v1::NodeView view = PeerView(1, v1::HEALTHY);
  view.set_clock_ns(1'700'000'000'000'000'000 + core_.Now() + 7 * kNanosPerSecond);
  wiring_->backend().ReceiveView(view, 3, {.address = "h1"});
  Settle();
  const v1::StatusReply status = Status();
  ASSERT_EQ(status.nodes_size(), 2);
  EXPECT_FALSE(status.nodes(0).has_clock_ahead_ns()) << "the own one";
  EXPECT_EQ(status.nodes(1).clock_ahead_ns(), 7 * kNanosPerSecond);
}

TEST_F(PeerSetTest, PlansOfManyNodesKeepADistance) {
  const size_t before = page_->plans().size();
  for (int node = 0; node < 300; ++node) StoreAnnounces(absl::StrCat("o", node), "");
  EXPECT_LE(page_->plans().size(), before + kPlanAtOnceNodes);
  core_.Advance(300 * kPlanIntervalPerNode);
  EXPECT_LE(page_->plans().size(), before + kPlanAtOnceNodes + 2);
  const auto& nics = page_->plans().back().nics;
  EXPECT_TRUE(std::any_of(nics.begin(), nics.end(), [](const plan::PlannedNic& nic) { return nic.node == "o299"; }));
}

// Its jobs get it from no other source.
TEST_F(PeerSetTest, TheOwnNicsDoNotWaitForThePlansOfOthers) {
  for (int node = 0; node < 300; ++node) StoreAnnounces(absl::StrCat("o", node), "");
  core_.Advance(300 * kPlanIntervalPerNode);
  StoreAnnounces("p0", "");
  StoreAnnounces("p1", "");
  EXPECT_FALSE(page_->Find("p1", "rail0").has_value()) << "nothing is waited for";
  links_->Set("eth1", false);
  Settle();
  EXPECT_EQ(Weight("n0", "rail1"), 0);
}

class FormerRunsTest : public PeerSetTest {
 protected:
  v1::NodeView View(uint64_t run, uint64_t counter, v1::NicState state) {
    v1::NodeView view = PeerView(counter, state);
    view.mutable_epoch()->set_incarnation(run);
    return view;
  }
  void Push(const v1::NodeView& view, uint64_t stream) {
    wiring_->backend().ReceiveView(view, stream, {.address = absl::StrCat("h1:", stream)});
    Settle();
  }
  void Put(const v1::NodeView& view) {
    store_->Change("/r2cc/nodes/n1", view.SerializeAsString());
    Settle();
  }
};

// Its number is lower, its counter begins again, and nobody closed the stream of its former run.
TEST_F(FormerRunsTest, ANodeThatLostPowerIsBelievedAfterTwoSeconds) {
  Push(View(9000, 500, v1::HEALTHY), 1);
  core_.Advance(300 * kMs);
  Push(View(20, 1, v1::FAILED), 2);
  EXPECT_EQ(Weight("n1", "rail0"), 1000);
  EXPECT_EQ(Newest("peer-held").peer_node(), "n1");
  EXPECT_EQ(Newest("peer-held").message(),
            "a view of n1 from h1:7460 (heard from h1:2) is rejected: another daemon of that name is active, at h1:7460 (heard from "
            "h1:1); it is accepted in 1700 ms if that one sends nothing more. If that one is the wrong one, stop it there");
  core_.Advance(1700 * kMs);
  Push(View(20, 1, v1::FAILED), 2);
  EXPECT_EQ(Weight("n1", "rail0"), 0);
  EXPECT_EQ(Newest("peer-anew").message(),
            "the daemon of n1 was restarted and is accepted, at h1:7460 (heard from h1:2); the previous one has sent nothing for 2000 ms");
  Push(View(9000, 501, v1::HEALTHY), 1);
  EXPECT_EQ(Weight("n1", "rail0"), 0) << "a former run's last view";
  EXPECT_EQ(Count("duplicate-node"), 0);
  EXPECT_EQ(Count("peer-held"), 1) << "not with each message";
}

TEST_F(FormerRunsTest, ADaemonThatEndsAndStartsIsBelievedAtOnce) {
  Push(View(9000, 500, v1::HEALTHY), 1);
  wiring_->backend().EndStream(1);
  Push(View(20, 1, v1::FAILED), 2);
  EXPECT_EQ(Weight("n1", "rail0"), 0);
  EXPECT_EQ(Count("peer-held"), 0);
  peers_->Connect("n1");
  peers_->Receive("n1", View(20, 2, v1::HEALTHY));
  wiring_->backend().EndStream(2);
  peers_->Lose("n1", "its daemon stopped");
  Push(View(3, 1, v1::FAILED), 3);
  EXPECT_EQ(Weight("n1", "rail0"), 0) << "our own stream's end counts as well";
}

TEST_F(FormerRunsTest, TwoDaemonsOfOneNameAreReportedAndTheFirstIsBelieved) {
  for (int i = 0; i < 10; ++i) {
    Push(View(20, 1, v1::HEALTHY), 1);
    Push(View(9000, 500, v1::FAILED), 2);
    core_.Advance(500 * kMs);
  }
  EXPECT_EQ(Weight("n1", "rail0"), 1000);
  EXPECT_EQ(Count("duplicate-node"), 1);
  EXPECT_EQ(Newest("duplicate-node").message(),
            "two daemons call themselves n1: one at h1:7460 (heard from h1:1), one at h1:7460 (heard from h1:2); give one of them another "
            "--node");
}

TEST_F(FormerRunsTest, AStoreEntryOfAFormerRunNeverWins) {
  Put(View(9000, 500, v1::HEALTHY));
  Push(View(20, 1, v1::FAILED), 1);
  EXPECT_EQ(Weight("n1", "rail0"), 0);
  wiring_->backend().EndStream(1);
  core_.Advance(4 * kNanosPerSecond);
  EXPECT_EQ(Weight("n1", "rail0"), 0) << "its entry is still there, as its lease is";
  Put(View(9000, 500, v1::HEALTHY));
  EXPECT_EQ(Weight("n1", "rail0"), 0);
  store_->Delete("/r2cc/nodes/n1");
  core_.Advance(60 * kNanosPerSecond);
  EXPECT_EQ(Weight("n1", "rail0"), 0);
  EXPECT_EQ(Status().nodes(1).word(), v1::NODE_UNREACHABLE) << "the former run's entry is no sign of life";
}

TEST_F(FormerRunsTest, AnEntryThatOutlastsItsLeaseIsOfARunningDaemon) {
  Put(View(9000, 500, v1::HEALTHY));
  Push(View(20, 1, v1::FAILED), 1);
  wiring_->backend().EndStream(1);
  core_.Advance(8 * kNanosPerSecond);
  EXPECT_EQ(Weight("n1", "rail0"), 1000) << "a second daemon of that name was there for a moment";
  EXPECT_EQ(Newest("peer-anew").message().rfind("the daemon of n1 is accepted again, at h1:7460 (heard from the store)", 0), 0u);
}

TEST_F(FormerRunsTest, TheOwnEntryIsPutAgainWhenAnotherDaemonWritesOverIt) {
  const std::string own = store_->entries().at("/r2cc/nodes/n0");
  v1::NodeView other;
  ASSERT_TRUE(other.ParseFromString(own));
  other.mutable_epoch()->set_incarnation(5);
  other.set_peer_address("h9:7460");
  store_->Change("/r2cc/nodes/n0", other.SerializeAsString());
  Settle();
  EXPECT_EQ(Count("duplicate-node"), 0) << "a former run's entry";
  const int puts = store_->puts();
  store_->Change("/r2cc/nodes/n0", own);
  for (int i = 0; i < 3; ++i) store_->Change("/r2cc/nodes/n0", other.SerializeAsString());
  core_.Advance(10 * kNanosPerSecond);
  EXPECT_EQ(store_->puts(), puts + 1);
  EXPECT_EQ(Newest("duplicate-node").message(),
            "two daemons call themselves n0: one at 0.0.0.0:7460, one at h9:7460 (heard from the store); give one of them another --node");
  store_->Change("/r2cc/nodes/n0", own);
  store_->Delete("/r2cc/nodes/n0");
  core_.Advance(10 * kNanosPerSecond);
  EXPECT_EQ(store_->puts(), puts + 2) << "somebody deleted it";
}

class DepartedTest : public PeerSetTest {
 protected:
  absl::StatusOr<v1::ForgetNodeReply> Forget(const std::string& node, const Caller& caller = kRoot) {
    v1::ForgetNodeRequest request;
    request.set_node(node);
    std::optional<absl::StatusOr<v1::ForgetNodeReply>> result;
    wiring_->backend().Ask(request, caller, [&](absl::StatusOr<v1::ForgetNodeReply> reply) { result.emplace(std::move(reply)); });
    Settle();
    return result.has_value() ? *result : absl::StatusOr<v1::ForgetNodeReply>(absl::DeadlineExceededError("no answer"));
  }
  bool Planned(const std::string& node) { return page_->Find(node, "rail0").has_value(); }
};

TEST_F(DepartedTest, AnOperatorMayForgetWhoHasLeft) {
  peers_->Receive("n1", PeerView(1, v1::FAILED));
  StoreAnnounces("n7", "h7:7460");
  core_.Advance(kNanosPerSecond);
  EXPECT_TRUE(Planned("n7"));
  EXPECT_EQ(Forget("n7").status().message().rfind("node n7 is alive: it sent something ", 0), 0u) << Forget("n7").status();
  EXPECT_EQ(Forget("n0").status(), absl::FailedPreconditionError("n0 is the node of this daemon"));
  EXPECT_EQ(Forget("n9").status(), absl::NotFoundError("there is no node 'n9'; the nodes are n0 n1 n2 n7"));
  store_->Delete("/r2cc/nodes/n7");
  core_.Advance(6 * kNanosPerSecond);
  const Caller nobody{.kind = Caller::Kind::kNobody, .address = "h9:1"};
  EXPECT_EQ(Forget("n7", nobody).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Newest("operator").message().rfind("refused: forget n7, by an unauthenticated caller at h9:1: ", 0), 0u);
  EXPECT_TRUE(Planned("n7"));
  const auto reply = Forget("n7");
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_FALSE(reply->configured());
  EXPECT_GE(reply->silent_ns(), 6 * kNanosPerSecond);
  EXPECT_EQ(Newest("operator").message(), "forget n7, by uid 0 (pid 1): and forwarded to 1 other daemons");
  EXPECT_EQ(Newest("node-forgotten").message(), "node n7 is forgotten: it has sent nothing for 6 s: an operator asked for it");
  core_.Advance(kNanosPerSecond);
  EXPECT_FALSE(Planned("n7")) << "the page has no entry of it either";
  EXPECT_TRUE(Planned("n1"));
  EXPECT_TRUE(Forget("n1")->configured());
  StoreAnnounces("n7", "h7:7460");
  core_.Advance(kNanosPerSecond);
  EXPECT_TRUE(Planned("n7")) << "it is back";
}

// n9 is not known here: the operator gets n1's answer.
TEST_F(DepartedTest, TheOtherDaemonsAreAskedAndTheirAnswersAreInTheReport) {
  peers_->Receive("n1", PeerView(1, v1::HEALTHY));
  core_.Advance(kNanosPerSecond);
  const std::string unknown = "there is no node 'n9'; the nodes are n0 n1 n2";
  EXPECT_EQ(Forget("n9").status(), absl::NotFoundError(unknown)) << "nobody can be reached";
  v1::ForgetNodeRequest asked;
  absl::StatusOr<v1::ForgetNodeReply> answer = absl::PermissionDeniedError("uid 0 on n0 does not have the role OPERATE");
  peers_->SetForgetter("n1", [&](const v1::ForgetNodeRequest& request) {
    asked = request;
    return answer;
  });
  EXPECT_EQ(Forget("n9").status(), absl::NotFoundError(unknown)) << "a caller without the role there learns nothing of the node";
  EXPECT_EQ(asked.node(), "n9");
  EXPECT_EQ(asked.asker().node(), "n0");
  answer = absl::NotFoundError("there is no node 'n9'");
  EXPECT_EQ(Forget("n9").status(), absl::NotFoundError(unknown));
  answer = absl::FailedPreconditionError("node n9 is alive\n");
  EXPECT_EQ(Forget("n9").status(), absl::FailedPreconditionError("on n1: node n9 is alive?"));
  v1::ForgetNodeReply done;
  done.set_silent_ns(7 * kNanosPerSecond);
  answer = done;
  const auto reply = Forget("n9");
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->others(), 1u);
  EXPECT_EQ(reply->silent_ns(), 7 * kNanosPerSecond);
}

TEST_F(DepartedTest, ANodeThatIsSilentForHoursIsForgottenUnlessConfigured) {
  FakeWorld::MakeDaemon(R"(node: "n0" peers { node: "n1" address: "h1:7460" } nics { name: "rail0" interface: "eth0" }
                           limits { forget_nodes_after_h: 1 })",
                        2000);
  peers_->Receive("n1", PeerView(1, v1::HEALTHY));
  StoreAnnounces("n7", "h7:7460");
  StoreAnnounces("n8", "h8:7460");
  store_->Delete("/r2cc/nodes/n7");
  core_.Advance(3500 * kNanosPerSecond);
  EXPECT_EQ(Status().nodes_size(), 4);
  core_.Advance(200 * kNanosPerSecond);
  EXPECT_EQ(Newest("node-forgotten").message().rfind("node n7 is forgotten: it has sent nothing for 36", 0), 0u);
  ASSERT_EQ(Status().nodes_size(), 3) << "n8 is in the store, n1 in the configuration";
  EXPECT_EQ(Status().nodes(2).node(), "n8");
}

TEST_F(DepartedTest, ANodeThatLeftMakesRoomForANewOne) {
  FakeWorld::MakeDaemon(R"(node: "n0" nics { name: "rail0" interface: "eth0" } limits { nodes: 3 })", 2000);
  StoreAnnounces("n7", "h7:7460");
  StoreAnnounces("n8", "h8:7460");
  StoreAnnounces("n9", "h9:7460");
  EXPECT_EQ(Status().nodes_size(), 3) << "there is no room while all are alive";
  EXPECT_FALSE(Planned("n9"));
  store_->Delete("/r2cc/nodes/n8");
  core_.Advance(6 * kNanosPerSecond);
  StoreAnnounces("n9", "h9:7460");
  core_.Advance(kNanosPerSecond);
  EXPECT_TRUE(Planned("n9"));
  EXPECT_FALSE(Planned("n8"));
  EXPECT_TRUE(Planned("n7"));
}

// A sign of life is no change, and no other view goes out for it.
TEST_F(PeerSetTest, AKeepAliveChangesNothing) {
  v1::NodeView view = PeerView(1, v1::HEALTHY);
  peers_->Receive("n1", view);
  Settle();
  const size_t pushed = peers_->pushed().size();
  const size_t plans = page_->plans().size();
  for (int i = 0; i < 100; ++i) peers_->Receive("n1", view);
  Settle();
  EXPECT_EQ(peers_->pushed().size(), pushed);
  EXPECT_EQ(page_->plans().size(), plans);
}

}  // namespace
}  // namespace r2cc::daemon
