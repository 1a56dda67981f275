// Commands of operators: the daemon obeys, keeps and audits them, or refuses them with a reason.
#include <gtest/gtest.h>

#include "daemon/wiring_rig.h"

namespace r2cc::daemon {
namespace {

TEST_F(WiringTest, TheOperatorsSettingIsObeyedAndKeptOverARestart) {
  auto reply = Act("n0", "rail0", v1::DRAIN);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_TRUE(reply->changed());
  EXPECT_EQ(reply->nic().state(), v1::DRAINED);
  EXPECT_FALSE(Act("n0", "rail0", v1::DRAIN)->changed());
  EXPECT_TRUE(Act("n0", "rail1", v1::SET_WEIGHT, 300)->changed());
  EXPECT_TRUE(Act("n0", "rail2", v1::FAIL)->changed());
  EXPECT_EQ(Weight("n0", "rail0"), 0);
  EXPECT_EQ(Weight("n0", "rail1"), 300);
  EXPECT_EQ(page_->Find("n0", "rail2")->state, plan::PlannedState::kFailed);
  EXPECT_EQ(Newest("operator").message(), "fail n0/rail2 for 10m, by uid 0 (pid 1)");
  const Epoch before = page_->plans().back().epoch;

  MakeDaemon(/*incarnation=*/2000);
  EXPECT_EQ(page_->Find("n0", "rail0")->state, plan::PlannedState::kDrained);
  EXPECT_EQ(Weight("n0", "rail1"), 300);
  EXPECT_EQ(page_->Find("n0", "rail2")->state, plan::PlannedState::kFailed);
  EXPECT_NE(page_->plans().front().epoch.incarnation, before.incarnation);

  EXPECT_TRUE(Act("n0", "rail0", v1::UNDRAIN)->changed());
  EXPECT_TRUE(Act("n0", "rail1", v1::SET_WEIGHT, 1000)->changed());
  EXPECT_TRUE(Act("n0", "rail2", v1::RESTORE)->changed());
  core_.Advance(2000 * kMs);
  for (const char* nic : {"rail0", "rail1", "rail2"}) EXPECT_EQ(Weight("n0", nic), 1000) << nic;
}

TEST_F(WiringTest, ADrillEndsByItselfAlsoOverRestartsAndReboots) {
  EXPECT_EQ(Act("n0", "rail2", v1::FAIL, 0, kRoot, kNanosPerSecond / 2).status(),
            absl::InvalidArgumentError("a drill lasts 1s to 24h, not 500ms"));
  EXPECT_FALSE(Act("n0", "rail2", v1::FAIL, 0, kRoot, 86'401 * kNanosPerSecond).ok());
  const auto reply = Act("n0", "rail2", v1::FAIL, 0, kRoot, 100 * kNanosPerSecond);
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(reply->nic().drill_ends_ns() - (1'700'000'000'000'000'000 + core_.Now()), 100 * kNanosPerSecond);
  core_.Advance(99 * kNanosPerSecond);
  EXPECT_EQ(page_->Find("n0", "rail2")->state, plan::PlannedState::kFailed);
  core_.Advance(kNanosPerSecond + kMs);
  EXPECT_NE(page_->Find("n0", "rail2")->state, plan::PlannedState::kFailed);
  EXPECT_EQ(Newest("drill").message(), "the drill on n0/rail2 is over: its time has passed");
  EXPECT_EQ(Newest("drill").audit().action(), "drill-end");

  // A restart: the time that it did not run counts.
  ASSERT_TRUE(Act("n0", "rail2", v1::FAIL, 0, kRoot, 100 * kNanosPerSecond).ok());
  boot_offset_ += 60 * kNanosPerSecond;
  MakeDaemon(/*incarnation=*/2000);
  core_.Advance(39 * kNanosPerSecond);
  EXPECT_EQ(page_->Find("n0", "rail2")->state, plan::PlannedState::kFailed);
  core_.Advance(2 * kNanosPerSecond);
  EXPECT_NE(page_->Find("n0", "rail2")->state, plan::PlannedState::kFailed);

  // A reboot: what was left when it was written last.
  ASSERT_TRUE(Act("n0", "rail2", v1::FAIL, 0, kRoot, 100 * kNanosPerSecond).ok());
  core_.Advance(50 * kNanosPerSecond);
  Settle();
  boot_id_ = "boot-2";
  boot_offset_ = -core_.Now();
  MakeDaemon(/*incarnation=*/3000);
  core_.Advance(25 * kNanosPerSecond);
  EXPECT_EQ(page_->Find("n0", "rail2")->state, plan::PlannedState::kFailed);
  core_.Advance(25 * kNanosPerSecond);
  EXPECT_NE(page_->Find("n0", "rail2")->state, plan::PlannedState::kFailed) << "a drill does not outlive its length";

  // It ends while nobody is there.
  ASSERT_TRUE(Act("n0", "rail2", v1::FAIL, 0, kRoot, 100 * kNanosPerSecond).ok());
  boot_offset_ += 100 * kNanosPerSecond;
  MakeDaemon(/*incarnation=*/4000);
  EXPECT_EQ(page_->Find("n0", "rail2")->state, plan::PlannedState::kHealthy);
  EXPECT_EQ(Newest("drill").message(), "the drill on n0/rail2 is over: its time passed while r2ccd did not run");

  ASSERT_TRUE(Act("n0", "rail2", v1::FAIL, 0, kRoot, 100 * kNanosPerSecond).ok());
  EXPECT_TRUE(Act("n0", "rail2", v1::RESTORE)->changed());
  const int ends = Count("drill");
  core_.Advance(200 * kNanosPerSecond);
  EXPECT_EQ(Count("drill"), ends) << "taken back before";
}

TEST_F(WiringTest, OperatorsActionsOutliveTheDaemonAndTheEventsOfJobs) {
  EXPECT_TRUE(Act("n0", "rail0", v1::DRAIN).ok());
  EXPECT_FALSE(Act("n0", "rail9", v1::DRAIN).ok());
  EXPECT_FALSE(Act("n0", "rail0", v1::DRAIN)->changed());
  EXPECT_EQ(Newest("operator").message(), "drain n0/rail0, by uid 0 (pid 1): it already was so");
  EXPECT_FALSE(Act("n1", "rail0", v1::DRAIN).ok());
  EXPECT_EQ(Newest("operator").message(), "refused: drain n1/rail0, by uid 0 (pid 1), forwarded: node n1 cannot be reached");
  Settle();
  MakeDaemon(/*incarnation=*/2000);
  for (size_t i = 0; i < EventLog::kEventsMax; ++i) wiring_->backend().events().Append(v1::Event());
  ASSERT_EQ(Count("operator"), 4);
  const auto first = wiring_->backend().events().After(0);
  EXPECT_EQ(first->message(), "drain n0/rail0, by uid 0 (pid 1)");
  EXPECT_EQ(first->audit().told_by(), "n0");
  EXPECT_EQ(wiring_->backend().events().After(first->sequence())->message(),
            "refused: drain n0/rail9, by uid 0 (pid 1): node n0 has no NIC 'rail9'; it has rail0 rail1 rail2");
}

TEST_F(WiringTest, EventsThatTheHistoryLostInACrashAreInTheAudit) {
  EXPECT_TRUE(Act("n0", "rail0", v1::DRAIN).ok());
  wiring_.reset();
  Settle();
  const std::string history = *files_.Read("/lib/events.log");
  const size_t lost = history.rfind('\n', history.find("by uid 0"));
  ASSERT_NE(lost, std::string::npos);
  ASSERT_TRUE(files_.WriteAtomically("/lib/events.log", history.substr(0, lost + 1)).ok());
  for (const uint64_t incarnation : {2000, 3000}) {
    MakeDaemon(incarnation);
    EXPECT_EQ(Count("operator"), 1) << "once";
    wiring_.reset();
    Settle();
  }
  MakeDaemon(4000);
}

TEST_F(WiringTest, AnOperatorsMistakeIsReportedAndChangesNothing) {
  const size_t plans = page_->plans().size();
  EXPECT_EQ(Act("n0", "rail9", v1::DRAIN).status(), absl::NotFoundError("node n0 has no NIC 'rail9'; it has rail0 rail1 rail2"));
  EXPECT_EQ(Act("n7", "rail0", v1::DRAIN).status(), absl::NotFoundError("there is no node 'n7'; the nodes are n0 n1 n2"));
  EXPECT_EQ(Act("", "", v1::DRAIN).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Act("n0", "rail0", v1::SET_WEIGHT, 1001).status(),
            absl::InvalidArgumentError("weight 1001 is out of range; it is from 0 to 1000 permille"));
  EXPECT_EQ(Act("n0", "rail0", v1::NIC_ACTION_UNSPECIFIED).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Act("n1", "rail0", v1::DRAIN, 0, kForwarded).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(page_->plans().size(), plans);
}

TEST_F(WiringTest, AnotherNodesNicIsForwarded) {
  EXPECT_EQ(Act("n1", "rail0", v1::FAIL).status(), absl::UnavailableError("node n1 cannot be reached"));
  peers_->SetActor("n1", [](const v1::NicActionRequest& request) {
    v1::NicActionReply reply;
    reply.mutable_nic()->set_name(request.nic());
    reply.set_changed(true);
    return reply;
  });
  const auto reply = Act("n1", "rail0", v1::FAIL);
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(reply->nic().name(), "rail0");
}

TEST_F(WiringTest, ADrainAtOnceIsAFailureToJobsAndADrainToPeople) {
  auto reply = Act("n0", "rail0", v1::DRAIN_NOW);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_TRUE(reply->changed());
  EXPECT_EQ(reply->nic().state(), v1::DRAINED);
  EXPECT_EQ(reply->nic().reason(), "drained by the operator, at once");
  EXPECT_TRUE(reply->nic().drained_now());
  EXPECT_EQ(page_->Find("n0", "rail0")->state, plan::PlannedState::kDrainedNow);
  EXPECT_FALSE(Act("n0", "rail0", v1::DRAIN_NOW)->changed());
  EXPECT_FALSE(Act("n0", "rail0", v1::DRAIN)->changed());
  EXPECT_TRUE(Act("n0", "rail0", v1::UNDRAIN)->changed());
  EXPECT_EQ(page_->Find("n0", "rail0")->state, plan::PlannedState::kHealthy);
  // A drain that takes too long is hurried.
  EXPECT_TRUE(Act("n0", "rail0", v1::DRAIN)->changed());
  EXPECT_EQ(page_->Find("n0", "rail0")->state, plan::PlannedState::kDrained);
  EXPECT_TRUE(Act("n0", "rail0", v1::DRAIN_NOW)->changed());
  EXPECT_EQ(page_->Find("n0", "rail0")->state, plan::PlannedState::kDrainedNow);
  // The last NIC is not taken unasked.
  EXPECT_TRUE(Act("n0", "rail1", v1::DRAIN).ok());
  EXPECT_EQ(Act("n0", "rail2", v1::DRAIN_NOW).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(WiringTest, ADisagreementOfRanksIsAnEventAndIsAudited) {
  const auto report = [&](const v1::DisagreementRequest& request, const Caller& caller = kRoot) {
    absl::StatusOr<v1::DisagreementReply> result = absl::UnknownError("no answer");
    wiring_->backend().Ask(request, caller, [&](absl::StatusOr<v1::DisagreementReply> reply) { result = std::move(reply); });
    Settle();
    return result;
  };
  v1::DisagreementRequest request;
  request.set_run("run1");
  request.set_step(~uint64_t{0});
  request.set_point("layers.3:hash");
  EXPECT_EQ(report(request).status(), absl::InvalidArgumentError("a disagreement has a run, a point and at least one rank"));
  request.add_ranks("rank 2 of run1");
  const auto reply = report(request);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->node(), "n0");
  const v1::Event event = Newest("disagreement");
  EXPECT_EQ(
      event.message(),
      "ranks of run run1 disagree at step 18446744073709551615, point layers.3:hash: rank 2 of run1 differs; reported by uid 0 (pid 1)");
  EXPECT_EQ(event.audit().action(), "disagreement");
  EXPECT_EQ(event.audit().target(), "n0");
  EXPECT_EQ(event.audit().who(), "uid 0 (pid 1)");
  EXPECT_EQ(event.audit().uid(), 0u);
  EXPECT_EQ(page_->Find("n0", "rail0")->state, plan::PlannedState::kHealthy) << "it names no rail";

  // Text that is no text, and too much of it.
  request.set_run("r\x1b[2J\n" + std::string(100'000, 'x'));
  request.set_point("p\tq\xff");
  for (int i = 0; i < 1000; ++i) request.add_ranks(std::string(1000, '\n'));
  ASSERT_TRUE(report(request).ok());
  const std::string message = Newest("disagreement").message();
  EXPECT_LT(message.size(), 2000u);
  EXPECT_EQ(message.rfind("ranks of run r?[2J?xxx", 0), 0u) << message;
  EXPECT_NE(message.find(", point p?q?: rank 2 of run1, ???"), std::string::npos) << message;
  EXPECT_NE(message.find(" and 993 more differ; "), std::string::npos) << message;
}

TEST_F(WiringTest, EachUserReportsFewDisagreements) {
  const auto report = [&](uint32_t uid) {
    v1::DisagreementRequest request;
    request.set_run("run1");
    request.set_point("h:hash");
    request.add_ranks("rank 0");
    Caller caller = kRoot;
    caller.uid = uid;
    absl::Status status = absl::UnknownError("no answer");
    wiring_->backend().Ask(request, caller, [&](const absl::StatusOr<v1::DisagreementReply>& reply) { status = reply.status(); });
    Settle();
    return status;
  };
  const int before = Count("disagreement");
  int made = 0;
  for (int i = 0; i < 1000; ++i) made += report(0).ok() ? 1 : 0;
  EXPECT_EQ(made, 8);
  EXPECT_EQ(Count("disagreement") - before, 8);
  EXPECT_TRUE(absl::IsResourceExhausted(report(0)));
  core_.Advance(3600 * kNanosPerSecond);
  EXPECT_TRUE(report(0).ok());
  EXPECT_NE(Newest("disagreement").message().find("; 993 more reports before it are left out"), std::string::npos);
}

}  // namespace
}  // namespace r2cc::daemon
