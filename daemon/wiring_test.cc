// Inputs at one end of the daemon must come out at the other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/wiring_rig.h"

namespace r2cc::daemon {
namespace {

TEST_F(WiringTest, StartsWithEveryNicInThePage) {
  EXPECT_EQ(page_->plans().size(), 1u) << "one turn, one plan";
  for (const char* nic : {"rail0", "rail1", "rail2"}) EXPECT_EQ(Weight("n0", nic), 1000) << nic;
  EXPECT_EQ(Status().word(), v1::NODE_HEALTHY);
  EXPECT_EQ(Newest("daemon-started").node(), "n0");
  v1::NodeView stored;
  ASSERT_TRUE(stored.ParseFromString(store_->entries().at("/r2cc/nodes/n0")));
  EXPECT_EQ(stored.nics_size(), 3);
  EXPECT_EQ(store_->prefix(), "/r2cc/nodes/");
}

TEST_F(WiringTest, ALinkThatGoesDownIsOutOfThePageAndReportedAtOnce) {
  const int doorbells = jobs_->doorbells();
  const size_t pushes = peers_->pushed().size();
  links_->Set("eth1", false);
  Settle();  // no time passes
  EXPECT_EQ(Weight("n0", "rail1"), 0);
  EXPECT_EQ(page_->Find("n0", "rail1")->state, plan::PlannedState::kFailed);
  EXPECT_EQ(Weight("n0", "rail0"), 1000);
  EXPECT_EQ(jobs_->doorbells(), doorbells + 1);
  ASSERT_EQ(peers_->pushed().size(), pushes + 1);
  EXPECT_EQ(peers_->pushed().back().nics(1).state(), v1::FAILED);
  EXPECT_EQ(Newest("nic-state").nic(), "rail1");
  EXPECT_EQ(Newest("nic-state").to_state(), v1::FAILED);

  links_->Set("eth1", true);
  Settle();
  EXPECT_EQ(Weight("n0", "rail1"), 0) << "not proved yet";
  core_.Advance(2000 * kMs);
  EXPECT_EQ(Weight("n0", "rail1"), 1000);
}

TEST_F(WiringTest, ThePageAndThePeersComeBeforeTheEvent) {
  std::vector<std::pair<uint16_t, v1::NicState>> when_reported;  // what the page and the peers had by then
  const auto listener = wiring_->backend().events().Listen(
      [&] { when_reported.emplace_back(Weight("n0", "rail1"), wiring_->backend().broadcaster().Get()->nics(1).state()); });
  links_->Set("eth1", false);
  Settle();
  wiring_->backend().events().Unlisten(listener);
  EXPECT_EQ(when_reported, (std::vector<std::pair<uint16_t, v1::NicState>>(2, {0, v1::FAILED}))) << "the state and the plan";
}

TEST_F(WiringTest, APeersViewChangesThePage) {
  peers_->Connect("n1");
  peers_->Receive("n1", PeerView(1, v1::HEALTHY));
  Settle();
  EXPECT_EQ(Weight("n1", "rail0"), 1000);
  // It may come over any way: the peer's own stream to us, ours to it, the store.
  wiring_->backend().ReceiveView(PeerView(2, v1::FAILED), 1, {.address = "h1"});
  Settle();
  EXPECT_EQ(Weight("n1", "rail0"), 0);
  EXPECT_EQ(Newest("nic-state").node(), "n1");
  store_->Change("/r2cc/nodes/n1", PeerView(3, v1::DRAINED).SerializeAsString());
  Settle();
  EXPECT_EQ(page_->Find("n1", "rail0")->state, plan::PlannedState::kDrained);
  peers_->Receive("n1", PeerView(2, v1::HEALTHY));
  Settle();
  EXPECT_EQ(page_->Find("n1", "rail0")->state, plan::PlannedState::kDrained) << "an older setting does not undo a newer one";
  EXPECT_EQ(Status().nodes(1).peer_address(), "h1:7460");
}

// A view of a release with another protocol is not half understood: the earlier view stays.
TEST_F(WiringTest, APeerWithAnotherProtocolIsRefusedAndNamed) {
  peers_->Connect("n1");
  peers_->Receive("n1", PeerView(1, v1::FAILED));
  v1::NodeView foreign = PeerView(2, v1::HEALTHY);
  foreign.set_protocol(kPeerProtocol + 1);
  foreign.set_protocol_newest(kPeerProtocol + 2);
  foreign.set_release("9.9");
  const std::string error =
      "the daemon of n1 (release 9.9) speaks protocol 4 to 5, this one 3: "
      "install releases next to each other, and one on all nodes in the end";
  peers_->Receive("n1", foreign);
  store_->Change("/r2cc/nodes/n1", foreign.SerializeAsString());
  wiring_->backend().ReceiveView(foreign, 1, {.address = "h1"});
  Settle();
  EXPECT_EQ(Weight("n1", "rail0"), 0);
  EXPECT_FALSE(Status().peers(0).connected());
  EXPECT_EQ(Status().peers(0).error(), error);
}

TEST_F(WiringTest, ALostPeersLastReportStays) {
  peers_->Connect("n1");
  peers_->Receive("n1", PeerView(1, v1::FAILED));
  peers_->Lose("n1", "connection refused");
  core_.Advance(60 * kNanosPerSecond);
  EXPECT_EQ(Weight("n1", "rail0"), 0);
  EXPECT_EQ(Newest("peer-lost").peer_node(), "n1");
  const auto status = Status();
  EXPECT_EQ(status.nodes(1).word(), v1::NODE_UNREACHABLE);
  EXPECT_FALSE(status.peers(0).connected());
  EXPECT_EQ(status.peers(0).error(), "connection refused, for 60 s");
}

TEST_F(WiringTest, ANodeThatOnlyTheStoreKnowsIsAliveAsLongAsItsLease) {
  store_->SetState("connected to n2");
  store_->Change("/r2cc/nodes/n1", PeerView(1, v1::HEALTHY).SerializeAsString());
  core_.Advance(60 * kNanosPerSecond);
  EXPECT_EQ(Status().nodes(1).word(), v1::NODE_HEALTHY);
  store_->Delete("/r2cc/nodes/n1");
  core_.Advance(60 * kNanosPerSecond);
  EXPECT_EQ(Status().nodes(1).word(), v1::NODE_UNREACHABLE);
  EXPECT_EQ(Weight("n1", "rail0"), 1000) << "an unreachable daemon is not a dead NIC";
}

TEST_F(WiringTest, AHostileOrMistakenPeerChangesNothing) {
  peers_->Receive("n1", PeerView(1, v1::HEALTHY));
  Settle();
  const size_t plans = page_->plans().size();
  v1::NodeView wrong = PeerView(2, v1::FAILED);
  wrong.set_node("n0");
  wiring_->backend().ReceiveView(wrong, 2, {.address = "h9"});  // somebody who claims to be us
  wrong.set_node("n2");
  peers_->Receive("n1", wrong);  // the wrong address in the configuration
  wrong = PeerView(2, v1::FAILED);
  wrong.mutable_nics(0)->set_operator_weight_permille(5000);
  wiring_->backend().ReceiveView(wrong, 2, {.address = "h9"});
  store_->Change("/r2cc/nodes/n1", "\xff\xff garbage");
  store_->Change("/r2cc/nodes/n1", [&] { return wrong.SerializeAsString(); }());
  store_->Change("/elsewhere", "");
  Settle();
  EXPECT_EQ(page_->plans().size(), plans);
  EXPECT_EQ(Status().peers(0).error(), "the daemon at h1:7460 has the name n2, not n1: correct one of the configurations");
}

TEST_F(WiringTest, AFullDiskDoesNotStopTheDaemon) {
  files_.SetFull(true);
  EXPECT_TRUE(Act("n0", "rail0", v1::DRAIN)->changed());
  EXPECT_EQ(Weight("n0", "rail0"), 0);
  ASSERT_EQ(Status().alarms_size(), 2);
  EXPECT_EQ(Status().alarms(0), "the audit will be lost at a restart: cannot write /lib/audit.log: No space left on device");
  EXPECT_EQ(Status().alarms(1), "operators' settings will be lost at a restart: cannot write /lib/state: No space left on device");
  EXPECT_EQ(Newest("state").message(), Status().alarms(1));
  EXPECT_TRUE(Act("n0", "rail1", v1::DRAIN)->changed());
  EXPECT_EQ(Count("state"), 2) << "two words, one complaint of each file";
  files_.SetFull(false);
  EXPECT_TRUE(Act("n0", "rail1", v1::UNDRAIN)->changed());
  core_.Advance(2 * kNanosPerSecond);
  Settle();
  EXPECT_EQ(Status().alarms_size(), 0) << "what waited for the disk is tried again a second later";
}

TEST_F(WiringTest, ADiskThatHangsDoesNotHoldUpTheOperator) {
  v1::NicActionRequest request;
  request.set_node("n0");
  request.set_nic("rail0");
  request.set_action(v1::DRAIN);
  int answers = 0;
  wiring_->backend().Ask(request, kRoot, [&](const absl::StatusOr<v1::NicActionReply>& reply) { answers += reply.ok(); });
  core_.Advance(400 * kMs);
  EXPECT_EQ(answers, 0);
  EXPECT_EQ(Weight("n0", "rail0"), 0) << "in force long before";
  core_.Advance(200 * kMs);
  EXPECT_EQ(answers, 1);
  Settle();
  core_.Advance(1000 * kMs);
  EXPECT_EQ(answers, 1);
}

TEST_F(WiringTest, AComplaintMakesTheDaemonLookItself) {
  jobs_->Attach(1, 4711, JobWithRails({"10.0.0.1"}));
  const int refreshes = links_->refreshes();
  links_->set_lossy(true);
  links_->Set("eth0", false);  // the kernel's word was lost
  Settle();
  EXPECT_EQ(Weight("n0", "rail0"), 1000);
  plan::EvidenceRecord fenced{};
  fenced.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kLinkFenced);
  fenced.cause = static_cast<uint32_t>(plan::EvidenceCause::kSilence);
  fenced.time_ns = core_.Now();
  jobs_->Deliver(1, {fenced});
  core_.Advance(kMs);
  EXPECT_GT(links_->refreshes(), refreshes);
  EXPECT_EQ(Weight("n0", "rail0"), 0);
}

TEST_F(WiringTest, APageThatCannotBeWrittenKeepsTheLastGoodPlan) {
  page_->Fail(absl::InternalError("no"));
  links_->Set("eth0", false);
  Settle();
  EXPECT_EQ(Weight("n0", "rail0"), 1000);
  page_->Fail(absl::OkStatus());
  core_.Advance(kNanosPerSecond);
  EXPECT_EQ(Weight("n0", "rail0"), 0) << "tried again";
}

TEST_F(WiringTest, TheHeartbeatGoesOnAndEpochsGrow) {
  core_.Advance(10 * kNanosPerSecond);
  EXPECT_LE(core_.Now() - page_->heartbeat(), plan::kPageHeartbeatInterval);
  links_->Set("eth0", false);
  Settle();
  links_->Set("eth1", false);
  Settle();
  const auto& plans = page_->plans();
  for (size_t i = 1; i < plans.size(); ++i) EXPECT_TRUE(plans[i].epoch.LaterThan(plans[i - 1].epoch));
  EXPECT_EQ(plans.front().epoch.incarnation, 1000u);
}

TEST_F(WiringTest, NothingNewMakesNoNewPlanAndNoNewView) {
  const size_t plans = page_->plans().size();
  const uint64_t epoch = peers_->pushed().empty() ? 0 : peers_->pushed().back().epoch().counter();
  core_.Advance(10 * kNanosPerSecond);
  EXPECT_EQ(page_->plans().size(), plans);
  EXPECT_GE(peers_->pushed().size(), 15u) << "keep-alives";
  EXPECT_TRUE(epoch == 0 || peers_->pushed().back().epoch().counter() == epoch);
}

TEST_F(WiringTest, AnUnansweredRequestIsAnsweredWhenTheCoreEnds) {
  absl::Status status;
  {
    FakeExecutor ended;
    ended.Post(
        [answer = Answer<v1::Plan>([&](const absl::StatusOr<v1::Plan>& reply) { status = reply.status(); })] { answer(v1::Plan()); });
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
}

TEST_F(WiringTest, RailProbesBeginWithThePeersPort) {
  wiring_->SetPeerAddress(kDefaultListen);  // as it is configured
  core_.Advance(100 * kMs);
  const v1::NodeView& own_view = peers_->pushed().back();
  ASSERT_EQ(own_view.nics_size(), 3);
  EXPECT_EQ(own_view.nics(0).probe_port(), 7460u);
  EXPECT_NE(own_view.probe_nonce(), 0u);
  EXPECT_EQ(Status().nodes(0).probe_nonce(), 0u);  // not for people
}

TEST_F(WiringTest, ExplainsItsOwnNicAndAsksOthersForTheirs) {
  const auto explain = [&](const std::string& node, const std::string& nic, const Caller& caller) {
    v1::ExplainNicRequest request;
    request.set_node(node);
    request.set_nic(nic);
    std::optional<absl::StatusOr<v1::ExplainNicReply>> result;
    wiring_->backend().Ask(request, caller, [&](absl::StatusOr<v1::ExplainNicReply> reply) { result.emplace(std::move(reply)); });
    Settle();
    return *result;
  };
  links_->Set("eth1", false);
  Settle();
  const auto why = explain("n0", "rail1", kRoot);
  ASSERT_TRUE(why.ok()) << why.status();
  EXPECT_EQ(why->verdict(), "port");
  EXPECT_EQ(why->verdict_text(), "port of n0/rail1 (NIC, cable or switch port): the kernel of its node reports: link down");
  EXPECT_EQ(why->planned().state(), v1::FAILED);
  ASSERT_GE(why->evidence_size(), 2);
  EXPECT_EQ(why->evidence(0).kind(), "link-down");
  ASSERT_GE(why->done_size(), 1);
  EXPECT_EQ(why->done(0).to_state(), v1::FAILED);
  EXPECT_EQ(explain("n0", "rail0", kRoot)->verdict(), "none");
  EXPECT_THAT(std::string(explain("n0", "rail9", kRoot).status().message()), testing::HasSubstr("rail9"));
  EXPECT_THAT(std::string(explain("n9", "rail0", kRoot).status().message()), testing::HasSubstr("there is no node 'n9'"));

  peers_->SetActor("n1", [](const v1::NicActionRequest&) { return v1::NicActionReply(); });
  EXPECT_EQ(explain("n1", "rail0", kRoot)->node(), "n1");
  EXPECT_TRUE(absl::IsUnavailable(explain("n2", "rail0", kRoot).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(explain("n1", "rail0", kForwarded).status()));

  // If a NIC's daemon cannot be asked, its last received state is shown.
  v1::NodeView received = PeerView(1, v1::HEALTHY);
  received.set_node("n2");
  wiring_->backend().ReceiveView(received, 3, {.address = "h2"});
  Settle();
  const auto afar = explain("n2", "rail0", kRoot);
  ASSERT_TRUE(afar.ok()) << afar.status();
  EXPECT_EQ(afar->verdict(), "cannot-tell");
  EXPECT_EQ(afar->nic().state(), v1::HEALTHY);
  EXPECT_EQ(afar->planned().state(), v1::HEALTHY);
  EXPECT_THAT(afar->advice(1), testing::HasSubstr("node n2 cannot be reached"));
  EXPECT_TRUE(absl::IsUnavailable(explain("n2", "rail9", kRoot).status()));
}

}  // namespace
}  // namespace r2cc::daemon
