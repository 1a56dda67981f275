// Jobs' reports to the daemon, and their effects.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/core/release.h"
#include "daemon/wiring_rig.h"
#include "plan/page/gave_up.h"

namespace r2cc::daemon {
namespace {

TEST_F(WiringTest, AJobIsMatchedAndCountedAndItsEvidenceArrives) {
  const auto decision = jobs_->Attach(1, 4711, JobWithRails({"10.0.1.1", "127.0.0.9", "9.9.9.9"}));
  EXPECT_EQ(decision.refused, "");
  EXPECT_EQ(decision.node, "n0");
  EXPECT_EQ(decision.nics, (std::vector<std::string>{"rail1", "rail2", ""}));
  EXPECT_EQ(Newest("job-attached").message(), "train (pid 4711) attached with 3 rails; none of this node's NICs: r2");

  plan::EvidenceRecord fenced{};
  fenced.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kLinkFenced);
  fenced.cause = static_cast<uint32_t>(plan::EvidenceCause::kSocketError);
  fenced.time_ns = core_.Now() - 5;
  fenced.local_rail = 0;
  fenced.replayed_bytes = 1 << 20;
  fenced.duration_ns = 3'000'000;
  plan::SetText("n1", fenced.peer_node);
  plan::SetText("rail0", fenced.peer_nic);
  jobs_->Deliver(1, {fenced});
  Settle();
  const v1::Event event = Newest("failover");
  EXPECT_EQ(event.nic(), "rail1");
  EXPECT_EQ(event.peer_node(), "n1");
  EXPECT_EQ(event.peer_nic(), "rail0");
  EXPECT_EQ(event.cause(), plan::CauseName(plan::EvidenceCause::kSocketError));
  EXPECT_EQ(event.replayed_bytes(), 1u << 20);
  EXPECT_EQ(event.duration_ns(), 3'000'000);
  EXPECT_EQ(event.pid(), 4711);
  EXPECT_EQ(event.monotonic_ns(), core_.Now() - 5);
  EXPECT_EQ(page_->Find("n0", "rail1")->state, plan::PlannedState::kSuspect) << "one job's report makes a NIC suspect";
  EXPECT_EQ(Weight("n0", "rail1"), 1000) << "and no more than that";

  v1::ListJobsReply listed;
  wiring_->backend().Ask(v1::ListJobsRequest(), Caller(), [&](absl::StatusOr<v1::ListJobsReply> reply) { listed = *std::move(reply); });
  Settle();
  ASSERT_EQ(listed.jobs_size(), 1);
  EXPECT_EQ(listed.jobs(0).rails(0).failovers(), 1u);
  EXPECT_EQ(Status().jobs(), 1u);
  jobs_->End(1);
  EXPECT_EQ(Newest("job-ended").pid(), 4711);
  EXPECT_EQ(Status().jobs(), 0u);
}

TEST_F(WiringTest, AJobThatHangsIsNamedWithWhatItWaitsFor) {
  jobs_->Attach(1, 4711, JobWithRails({"10.0.0.1", "10.0.1.1"}));
  const Nanos since = core_.Now();
  const auto wait = [&](uint64_t requests) {
    plan::EvidenceRecord record{};
    record.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kWaiting);
    record.time_ns = core_.Now();
    record.duration_ns = static_cast<uint64_t>(core_.Now() - since);
    record.bytes = requests;
    record.local_rail = 1;
    record.replayed_bytes = static_cast<uint64_t>(plan::WaitFor::kRail);
    plan::SetText("n1", record.peer_node);
    plan::SetText("rail1", record.peer_nic);
    jobs_->Deliver(1, {record});
    Settle();
  };
  for (int i = 0; i < 9; ++i) {
    core_.Advance(kNanosPerSecond);
    wait(3);
  }
  EXPECT_EQ(Count("job-hang"), 0);
  for (int i = 0; i < 9; ++i) {
    core_.Advance(kNanosPerSecond);
    wait(3);
  }
  EXPECT_EQ(Count("job-hang"), 1);
  const v1::Event event = Newest("job-hang");
  EXPECT_EQ(
      event.message(),
      "train (pid 4711) has 3 requests outstanding and has made no progress for 10 s: it waits for n1/rail1 over rail1: what was sent "
      "there is not acknowledged");
  EXPECT_EQ(event.peer_node(), "n1");
  EXPECT_EQ(event.peer_nic(), "rail1");
  EXPECT_EQ(event.job(), "train");
  EXPECT_THAT(Status().alarms(), testing::Contains(testing::HasSubstr("1 process of a job makes no progress")));
  v1::ListJobsReply listed;
  v1::ListJobsRequest bad;
  bad.set_bad(true);
  const auto list = [&] {
    wiring_->backend().Ask(bad, Caller(), [&](absl::StatusOr<v1::ListJobsReply> reply) { listed = *std::move(reply); });
    Settle();
  };
  list();
  ASSERT_EQ(listed.jobs_size(), 1);
  EXPECT_EQ(listed.jobs(0).waiting().requests(), 3u);
  EXPECT_EQ(listed.jobs(0).waiting().rail(), "rail1");
  EXPECT_TRUE(listed.jobs(0).waiting().hangs());
  wait(0);
  core_.Advance(kNanosPerSecond);
  EXPECT_EQ(Newest("job-progress").message(), "train (pid 4711) makes progress again after 18 s");
  EXPECT_THAT(Status().alarms(), testing::Not(testing::Contains(testing::HasSubstr("makes no progress"))));
  list();
  EXPECT_EQ(listed.jobs_size(), 0);
}

// A user's process may put anything into its ring.
TEST_F(WiringTest, AWaitThatMakesNoSenseHarmsNobody) {
  core_.Advance(60 * kNanosPerSecond);
  jobs_->Attach(1, 4711, JobWithRails({"10.0.0.1"}));
  plan::EvidenceRecord record{};
  record.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kWaiting);
  record.bytes = record.replayed_bytes = record.duration_ns = UINT64_MAX;
  for (const int64_t time_ns : {int64_t{0}, int64_t{1}, INT64_MAX}) {
    record.time_ns = time_ns;
    jobs_->Deliver(1, {record});
    Settle();
    core_.Advance(kNanosPerSecond);
  }
  EXPECT_EQ(Count("job-hang"), 1);
  EXPECT_THAT(Newest("job-hang").message(), testing::HasSubstr("a peer that has not answered yet: the reason is unknown"));
}

TEST_F(WiringTest, LostLargePacketsAreReportedAndMakeSuspect) {
  jobs_->Attach(1, 4711, JobWithRails({"10.0.0.1", "10.0.1.1"}));
  const auto deliver = [this](plan::EvidenceRecordKind kind, plan::EvidenceCause cause, uint64_t bytes) {
    plan::EvidenceRecord record{};
    record.kind = static_cast<uint32_t>(kind);
    record.cause = static_cast<uint32_t>(cause);
    record.local_rail = 1;
    record.time_ns = core_.Now();
    record.bytes = bytes;
    plan::SetText("n1", record.peer_node);
    plan::SetText("rail1", record.peer_nic);
    jobs_->Deliver(1, {record});
    Settle();
  };
  const auto reason = [this] {
    v1::ExplainNicReply explained;
    v1::ExplainNicRequest request;
    request.set_node("n0");
    request.set_nic("rail1");
    wiring_->backend().Ask(request, kRoot, [&](absl::StatusOr<v1::ExplainNicReply> reply) { explained = *std::move(reply); });
    Settle();
    return explained.nic().reason();
  };
  deliver(plan::EvidenceRecordKind::kLinkFenced, plan::EvidenceCause::kStalled, (uint64_t{1} << 32) | 4);
  EXPECT_THAT(Newest("failover").message(), testing::HasSubstr("n1/rail1: one of 4 connections carries nothing; 0 bytes replayed"));
  EXPECT_EQ(page_->Find("n0", "rail1")->state, plan::PlannedState::kSuspect);
  EXPECT_THAT(reason(), testing::HasSubstr("rail1 to n1: one of 4 connections carries nothing"));
  deliver(plan::EvidenceRecordKind::kLinkFenced, plan::EvidenceCause::kStalled, (uint64_t{3} << 32) | 2);
  EXPECT_THAT(Newest("failover").message(), testing::HasSubstr("some of its connections carry nothing"));
  deliver(plan::EvidenceRecordKind::kLinkFenced, plan::EvidenceCause::kStalled, (uint64_t{2} << 32) | 2);
  EXPECT_THAT(Newest("failover").message(), testing::HasSubstr("all 2 connections carry nothing"));

  deliver(plan::EvidenceRecordKind::kProofFailed, plan::EvidenceCause::kLargeLost, 1500);
  EXPECT_THAT(Newest("link-unproven").message(), testing::HasSubstr("n1/rail1: packets over 1500 bytes are lost; it goes on"));
  EXPECT_THAT(reason(), testing::HasSubstr("rail1 to n1: packets over 1500 bytes are lost; "));
  // It reports that each second; one event is made, until the link carries data.
  const uint64_t sequence = Newest("link-unproven").sequence();
  deliver(plan::EvidenceRecordKind::kProofFailed, plan::EvidenceCause::kLargeLost, UINT64_MAX);
  EXPECT_EQ(Newest("link-unproven").sequence(), sequence);
  deliver(plan::EvidenceRecordKind::kLinkUp, plan::EvidenceCause::kNone, 0);
  deliver(plan::EvidenceRecordKind::kProofFailed, plan::EvidenceCause::kSilence, 0);
  EXPECT_GT(Newest("link-unproven").sequence(), sequence);
  EXPECT_EQ(page_->Find("n0", "rail1")->state, plan::PlannedState::kSuspect) << "one job's report";
}

// Before the daemons are upgraded again an operator has to learn of such jobs from any daemon.
TEST_F(WiringTest, JobsWithPluginsOfOtherReleasesAreReportedToAll) {
  plan::AttachRequest job = JobWithRails({"10.0.1.1"});
  plan::SetText(Release(), job.release);
  jobs_->Attach(1, 4711, job);
  jobs_->Attach(2, 4712, JobWithRails({"10.0.1.1"}));
  core_.Advance(plan::kPageHeartbeatInterval);
  Settle();
  EXPECT_EQ(peers_->pushed().back().jobs_of_other_releases(), 1u);
  // The fields that the release before this one reads.
  EXPECT_EQ(peers_->pushed().back().protocol(), kPeerProtocolLeast);
  EXPECT_EQ(peers_->pushed().back().protocol_newest(), kPeerProtocol);
  peers_->Connect("n1");
  v1::NodeView view = PeerView(1, v1::HEALTHY);
  view.set_release("0.0.9");
  view.set_jobs_of_other_releases(3);
  peers_->Receive("n1", view);
  Settle();
  const v1::ClusterSummary summary = Status().summary();
  ASSERT_EQ(summary.releases_size(), 2);
  EXPECT_EQ(summary.jobs_of_other_releases(), 4u);
  jobs_->End(2);
  core_.Advance(plan::kPageHeartbeatInterval);
  Settle();
  EXPECT_EQ(peers_->pushed().back().jobs_of_other_releases(), 0u);
}

TEST_F(WiringTest, OnlyADaemonThatEndsOnPurposeHasAnEndLease) {
  wiring_->Stop();
  EXPECT_EQ(page_->ended_at(), 0);
  wiring_->EndOnPurpose();
  EXPECT_EQ(page_->ended_at(), core_.Now());
}

// The fact that distinguishes a port without a cable from one that lost it is kept over restarts and reboots.
TEST_F(WiringTest, ALinkThatAFormerRunSawUpIsAFaultWhenItIsDown) {
  const auto rail1 = [this] { return v1::NicState_Name(Status().nodes(0).nics(1).state()); };
  EXPECT_EQ(rail1(), "HEALTHY");
  eth1_up_ = false;
  MakeDaemon(/*incarnation=*/2000);
  EXPECT_EQ(rail1(), "FAILED");
  files_.Lose();
  MakeDaemon(/*incarnation=*/3000);
  EXPECT_EQ(rail1(), "UNCABLED") << "as far as anybody knows";
  EXPECT_EQ(Weight("n0", "rail1"), 0);
  links_->Set("eth1", true);
  core_.Advance(kNanosPerSecond);
  EXPECT_EQ(rail1(), "HEALTHY");
}

// By which `nic drain --wait` knows when it may return.
TEST_F(WiringTest, TrafficOverANicIsInItsExplanation) {
  const auto traffic = [this](const std::string& nic) {
    v1::ExplainNicRequest request;
    request.set_node("n0");
    request.set_nic(nic);
    v1::NicTraffic shown;
    wiring_->backend().Ask(request, kRoot, [&](absl::StatusOr<v1::ExplainNicReply> reply) { shown = reply->traffic(); });
    Settle();
    return shown;
  };
  const auto report = [this](uint64_t bytes) {
    plan::EvidenceRecord record{};
    record.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kRailTotals);
    record.time_ns = core_.Now();
    record.local_rail = 1;
    record.bytes = bytes;
    jobs_->Deliver(1, {record});
    Settle();
  };
  EXPECT_EQ(traffic("rail1").jobs_size(), 0);
  jobs_->Attach(1, 4711, JobWithRails({"10.0.0.1", "10.0.1.1"}));
  EXPECT_EQ(traffic("rail1").jobs(0), "train (pid 4711)");
  EXPECT_EQ(traffic("rail1").quiet_ns(), -1);
  report(1000);
  core_.Advance(kNanosPerSecond);
  EXPECT_EQ(traffic("rail1").quiet_ns(), kNanosPerSecond);
  report(2000);
  EXPECT_EQ(traffic("rail1").quiet_ns(), 0);
  core_.Advance(kNanosPerSecond);
  report(2000);
  EXPECT_EQ(traffic("rail1").quiet_ns(), kNanosPerSecond) << "the same bytes once more";
  EXPECT_EQ(traffic("rail0").quiet_ns(), -1);
}

TEST_F(WiringTest, AGrayRailIsDegradedWeightedAndForgotten) {
  jobs_->Attach(1, 4711, JobWithRails({"10.0.0.1", "10.0.1.1"}));
  const auto report_rate = [this](plan::EvidenceRecordKind kind, uint32_t permille) {
    plan::EvidenceRecord record{};
    record.kind = static_cast<uint32_t>(kind);
    record.time_ns = core_.Now();
    record.local_rail = 1;
    record.share_permille = permille;
    plan::SetText("n1", record.peer_node);
    plan::SetText("rail0", record.peer_nic);
    jobs_->Deliver(1, {record});
    Settle();
  };
  report_rate(plan::EvidenceRecordKind::kRailSlow, 612);
  EXPECT_EQ(page_->Find("n0", "rail1")->state, plan::PlannedState::kHealthy) << "for a moment";
  for (int second = 0; second < 3; ++second) {
    core_.Advance(kNanosPerSecond);
    report_rate(plan::EvidenceRecordKind::kRailSlow, 612);
  }
  EXPECT_EQ(page_->Find("n0", "rail1")->state, plan::PlannedState::kDegraded);
  EXPECT_EQ(Weight("n0", "rail1"), 700) << "and room to show more";
  EXPECT_EQ(Weight("n0", "rail0"), 1000);
  const v1::NicView nic = Status().nodes(0).nics(1);
  EXPECT_EQ(nic.state(), v1::DEGRADED);
  EXPECT_EQ(nic.reason(), "moves 60% of the best rail (train (pid 4711) to n1/rail0)");
  EXPECT_EQ(nic.share_permille(), 600u);
  EXPECT_EQ(Newest("nic-state").nic(), "rail1");

  const size_t plans = page_->plans().size();
  for (int i = 0; i < 30; ++i) {
    core_.Advance(kNanosPerSecond);
    report_rate(plan::EvidenceRecordKind::kRailSlow, 580 + i);
  }
  EXPECT_EQ(page_->plans().size(), plans) << "the same setting again is no new plan";
  report_rate(plan::EvidenceRecordKind::kRailSlow, 20);
  EXPECT_EQ(page_->Find("n0", "rail1")->state, plan::PlannedState::kDegraded) << "never FAILED by a job's report";
  EXPECT_EQ(Weight("n0", "rail1"), 500) << "one tenant takes no more from the others";
  core_.Advance(6 * kNanosPerSecond);
  EXPECT_EQ(page_->Find("n0", "rail1")->state, plan::PlannedState::kHealthy);
  EXPECT_EQ(Weight("n0", "rail1"), 1000);

  report_rate(plan::EvidenceRecordKind::kRailSlow, 250);
  report_rate(plan::EvidenceRecordKind::kRailSteady, 1000);
  core_.Advance(2 * kNanosPerSecond);
  EXPECT_EQ(Weight("n0", "rail1"), 1000);
}

TEST_F(WiringTest, AJobThatFloodsIsCountedAndItsEventsSuppressed) {
  jobs_->Attach(1, 4711, JobWithRails({"10.0.0.1"}));
  plan::EvidenceRecord up{};
  up.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kLinkUp);
  up.time_ns = core_.Now();
  jobs_->Deliver(1, std::vector<plan::EvidenceRecord>(10'000, up));
  EXPECT_EQ(Count("job-attached") + Count("link-up"), 1024);
  core_.Advance(kNanosPerSecond);
  jobs_->Deliver(1, std::vector<plan::EvidenceRecord>(10'000, up));
  EXPECT_EQ(Count("job-attached") + Count("link-up"), 1024 + 32);
}

TEST_F(WiringTest, JobsOfAUserShareOneEventRateAlsoThoseThatComeAndGo) {
  plan::EvidenceRecord up{};
  up.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kLinkUp);
  up.time_ns = core_.Now();
  for (JobId id = 1; id <= 4; ++id) {
    jobs_->Attach(id, 4710 + static_cast<int32_t>(id), JobWithRails({"10.0.0.1"}), 1000);
    jobs_->Deliver(id, std::vector<plan::EvidenceRecord>(10'000, up));
  }
  EXPECT_EQ(Count("link-up") + Count("job-attached"), 1024);
  for (JobId id = 10; id < 3000; ++id) {
    jobs_->Attach(id, 1, JobWithRails({}), 1000);
    jobs_->End(id);
  }
  EXPECT_EQ(Count("link-up") + Count("job-attached") + Count("job-ended"), 1024);
  jobs_->Attach(5000, 4715, JobWithRails({"10.0.0.1"}), 1001);
  EXPECT_EQ(Newest("job-attached").pid(), 4715) << "another user is served";
  for (JobId id = 6000; id < 9000; ++id) jobs_->Attach(id, 1, JobWithRails({}), 100'000 + static_cast<uint32_t>(id), "container a");
  EXPECT_EQ(Count("job-attached"), 2 + 1024) << "root of a container has all uids";
}

TEST_F(WiringTest, AJobThatKnowsNothingOfItsRailsNamesNone) {
  jobs_->Attach(1, 4711, JobWithRails(std::vector<std::string>(plan::kAttachRailsMax, "10.0.0.1")), 1000);
  plan::EvidenceRecord record{};
  record.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kGaveUp);
  record.time_ns = core_.Now();
  record.local_rail = plan::kAttachRailsMax - 1;
  record.duration_ns = 30 * kNanosPerSecond;
  record.bytes = plan::kNoRail;
  plan::SetText("n1", record.peer_node);
  jobs_->Deliver(1, {record});
  EXPECT_EQ(Newest("job-gave-up").message(),
            "job train (pid 4711) on n0 gave up on n1 after 30.0 s: no rail reached it; r2ccctl path probe n0 n1");
}

TEST_F(WiringTest, AJobThatGaveUpIsKeptWithItsReport) {
  core_.Advance(60 * kNanosPerSecond);
  jobs_->Attach(1, 4711, JobWithRails({"10.0.0.1", "10.0.1.1"}), 1000);
  std::vector<plan::EvidenceRecord> records(2);
  for (uint32_t rail = 0; rail < 2; ++rail) {
    plan::EvidenceRecord& record = records[rail];
    record.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kGaveUp);
    record.cause = static_cast<uint32_t>(rail == 0 ? plan::EvidenceCause::kSilence : plan::EvidenceCause::kLinkDown);
    record.time_ns = core_.Now() - 30 * kNanosPerSecond;
    record.local_rail = rail;
    record.duration_ns = 30 * kNanosPerSecond;
    record.bytes = rail == 0 ? static_cast<uint64_t>(plan::DeadPort::kPeer) : 99;
    plan::SetText("n1", record.peer_node);
    plan::SetText("rail" + std::to_string(rail), record.peer_nic);
  }
  jobs_->Deliver(1, records);
  const std::string text = Newest("job-gave-up").message();
  const std::string since = plan::TimeOfDay(1'700'000'000'000'000'000 + core_.Now() - 30 * kNanosPerSecond);
  EXPECT_EQ(text, "job train (pid 4711) on n0 gave up on n1 after 30.0 s: rail0 port of n1 silent since " + since +
                      ", rail1 link down; r2ccctl nic why n1/rail0");
  v1::ListJobsRequest ended;
  ended.set_ended(true);
  const auto listed = [&] {
    v1::ListJobsReply jobs;
    wiring_->backend().Ask(ended, Caller(), [&](absl::StatusOr<v1::ListJobsReply> reply) { jobs = *std::move(reply); });
    Settle();
    return jobs;
  };
  EXPECT_EQ(listed().jobs_size(), 0) << "it runs";
  jobs_->End(1);
  const v1::ListJobsReply jobs = listed();
  ASSERT_EQ(jobs.jobs_size(), 1);
  EXPECT_EQ(jobs.jobs(0).uid(), 1000u);
  ASSERT_EQ(jobs.jobs(0).gave_up_size(), 1);
  const v1::GaveUp& gave_up = jobs.jobs(0).gave_up(0);
  EXPECT_EQ(gave_up.text(), text);
  EXPECT_EQ(gave_up.peer_node(), "n1");
  EXPECT_EQ(gave_up.lasted_ns(), 30 * kNanosPerSecond);
  ASSERT_EQ(gave_up.rails_size(), 2);
  EXPECT_EQ(gave_up.rails(1).cause(), "link-down");
}

}  // namespace
}  // namespace r2cc::daemon
