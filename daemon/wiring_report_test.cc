// A job's report, gathered from the daemons of its nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "daemon/services/report_service.h"
#include "daemon/wiring_rig.h"

namespace r2cc::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class WiringReportTest : public WiringTest {
 protected:
  // A job's process here that talks to these nodes.
  void Attach(JobId id, const std::string& name, const std::vector<std::string>& peers) {
    plan::AttachRequest request = JobWithRails({"10.0.1.1"});
    plan::SetText(name, request.job);
    jobs_->Attach(id, 4711, request);
    for (const std::string& peer : peers) {
      plan::EvidenceRecord opened{};
      opened.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kFlowOpened);
      plan::SetText(peer, opened.peer_node);
      jobs_->Deliver(id, {opened});
    }
    plan::EvidenceRecord totals{};
    totals.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kRailTotals);
    totals.bytes = 100;
    jobs_->Deliver(id, {totals});
    Settle();
  }
  // The report of `node` about train, whose processes there communicate with `peers`.
  FakePeerTransport::Reporter ReporterOf(const std::string& node, const std::vector<std::string>& peers) {
    return [this, node, peers](const v1::ReportJobsRequest& request) {
      asked_.push_back(node);
      EXPECT_EQ(request.asker().node(), "n0");
      v1::ReportJobsReply reply;
      v1::ReportJobsReply::Whole& whole = *reply.add_jobs();
      whole.mutable_sums()->set_job("train");
      whole.mutable_sums()->set_processes(2);
      whole.mutable_sums()->set_ended_ns(std::numeric_limits<int64_t>::max());
      whole.mutable_sums()->set_sent_bytes(1000);
      for (const std::string& peer : peers) whole.add_peer_nodes(peer);
      return reply;
    };
  }
  absl::StatusOr<v1::ReportJobsReply> Report(const std::string& glob = "", const Caller& caller = kRoot) {
    v1::ReportJobsRequest request;
    request.set_job_glob(glob);
    std::optional<absl::StatusOr<v1::ReportJobsReply>> result;
    wiring_->backend().Ask(request, caller, [&](absl::StatusOr<v1::ReportJobsReply> reply) { result.emplace(std::move(reply)); });
    Settle();
    if (!result.has_value()) {
      core_.Advance(ReportService::kAnswerAfter);
      Settle();
    }
    return result.has_value() ? *result : absl::StatusOr<v1::ReportJobsReply>(absl::DeadlineExceededError("no answer"));
  }
  // A node that is known, with its address.
  void Know(const std::string& node) {
    v1::NodeView view = PeerView(1, v1::HEALTHY);
    view.set_node(node);
    view.set_peer_address(node + ":7460");
    store_->Change("/r2cc/nodes/" + node, view.SerializeAsString());
    Settle();
  }
  static std::vector<std::string> Nodes(const v1::ReportJobsReply::Whole& whole) {
    std::vector<std::string> nodes;
    for (const v1::NodeOfJob& node : whole.nodes()) nodes.push_back(node.node());
    return nodes;
  }

  std::vector<std::string> asked_;
};

TEST_F(WiringReportTest, NodesOfTheJobAreAskedAndThoseThatTheyName) {
  Know("n3");
  Attach(1, "train", {"n1"});
  Attach(2, "alone", {});
  // A ring: n0's processes talk to its neighbours alone.
  peers_->SetReporter("n1", ReporterOf("n1", {"n0", "n2"}));
  peers_->SetReporter("n2", ReporterOf("n2", {"n1", "n3"}));
  peers_->SetReporter("n3", ReporterOf("n3", {"n2", "n0"}));
  const auto reply = Report();
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->node(), "n0");
  EXPECT_THAT(reply->missing(), IsEmpty());
  EXPECT_THAT(asked_, ElementsAre("n1", "n2", "n3")) << "each once";
  ASSERT_EQ(reply->jobs_size(), 2);
  const v1::ReportJobsReply::Whole& train = reply->jobs(1);
  EXPECT_EQ(train.sums().job(), "train");
  EXPECT_EQ(train.sums().processes(), 7u);
  EXPECT_EQ(train.sums().sent_bytes(), 3100u);
  EXPECT_THAT(Nodes(train), ElementsAre("n0", "n1", "n2", "n3"));
  EXPECT_THAT(train.peer_nodes(), IsEmpty()) << "for daemons";
  EXPECT_THAT(Nodes(reply->jobs(0)), ElementsAre("n0"));
  const auto named = Report("al*");
  ASSERT_TRUE(named.ok());
  ASSERT_EQ(named->jobs_size(), 1);
  EXPECT_EQ(named->jobs(0).sums().job(), "alone");
}

TEST_F(WiringReportTest, SavedRunsAreSummedOverAllNodesAndAFaultOfTwoIsOne) {
  for (const char* const node : {"n3", "n4"}) Know(node);
  Attach(1, "train", {"n3"});
  plan::EvidenceRecord lost{};
  lost.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kLinkLost);
  lost.time_ns = core_.Now();
  plan::SetText("n3", lost.peer_node);
  plan::SetText("rail1", lost.peer_nic);
  plan::EvidenceRecord passed = lost;
  passed.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kLinkPassed);
  jobs_->Deliver(1, {lost, passed});
  Settle();
  core_.Advance(60 * kNanosPerSecond);
  Settle();
  const auto fault_time_ns = [&] { return Report()->jobs(0).sums().faults(0).time_ns(); };
  const int64_t time_ns = fault_time_ns();
  ASSERT_GT(time_ns, 0);
  asked_.clear();
  const auto reporter_of = [&, time_ns](const std::string& node, const std::string& job) {
    return [this, node, job, time_ns](const v1::ReportJobsRequest& request) {
      asked_.push_back(node);
      EXPECT_NE(request.since_ns(), 0);
      v1::ReportJobsReply reply;
      v1::JobSums& sums = *reply.add_jobs()->mutable_sums();
      sums.set_job(job);
      sums.set_processes(1);
      sums.set_begun_ns(time_ns - 1000);
      sums.set_ended_ns(time_ns + 50 * kNanosPerSecond);
      v1::Job::Fault& fault = *sums.add_faults();
      fault.set_nic("rail1");
      fault.set_time_ns(time_ns + 5);
      return reply;
    };
  };
  peers_->SetReporter("n3", reporter_of("n3", "train"));
  peers_->SetReporter("n4", reporter_of("n4", "other"));
  v1::ReportJobsRequest request;
  request.set_since_ns(1);
  const auto saved = [&] {
    std::optional<v1::ReportJobsReply> answer;
    wiring_->backend().Ask(request, kRoot, [&](absl::StatusOr<v1::ReportJobsReply> reply) { answer = *std::move(reply); });
    Settle();
    if (!answer.has_value()) {
      core_.Advance(ReportService::kAnswerAfter);
      Settle();
    }
    return *answer;
  };
  v1::ReportJobsReply reply = saved();
  EXPECT_THAT(asked_, testing::UnorderedElementsAre("n3", "n4")) << "the nodes of the job, and all others";
  EXPECT_EQ(reply.jobs_size(), 0);
  EXPECT_EQ(reply.saved().faults_masked(), 2u) << "n0 and n3 lost the same rail at once";
  EXPECT_EQ(reply.saved().jobs(), 2u);
  asked_.clear();
  request.set_only_here(true);
  reply = saved();
  EXPECT_THAT(asked_, IsEmpty());
  EXPECT_EQ(reply.saved().faults_masked(), 1u);
  // The same in the status and in the metrics, in both times.
  ASSERT_EQ(Status().saved_size(), 2);
  core_.Advance(ReportService::kSumsLast);
  const v1::StatusReply status = Status();
  EXPECT_EQ(status.saved(0).faults_masked(), 1u);
  EXPECT_EQ(status.saved(1).faults_masked(), 1u);
  std::shared_ptr<const MetricFacts> facts;
  wiring_->backend().Ask(MetricsRequest(), Caller(), [&](absl::StatusOr<std::shared_ptr<const MetricFacts>> answer) { facts = *answer; });
  Settle();
  EXPECT_EQ(facts->saved.faults_masked, 1u);
  EXPECT_EQ(facts->saved.died.size(), 3u);
}

TEST_F(WiringReportTest, ANodeThatDoesNotReportIsNamed) {
  for (const char* const node : {"n3", "n4"}) Know(node);
  Attach(1, "train", {"n2", "n3", "n4", "n5"});
  // n2 does not answer.
  peers_->SetReporter("n3", [](const v1::ReportJobsRequest&) { return absl::UnavailableError("node n3 cannot be reached"); });
  peers_->SetReporter("n4", [](const v1::ReportJobsRequest&) { return v1::ReportJobsReply(); });
  const auto reply = Report();
  ASSERT_TRUE(reply.ok()) << reply.status();
  std::map<std::string, std::string> missing;
  for (const auto& one : reply->missing()) missing[one.node()] = one.why();
  EXPECT_EQ(missing["n2"], "it has not answered within 5 s");
  EXPECT_EQ(missing["n3"], "node n3 cannot be reached");
  EXPECT_THAT(missing["n4"], HasSubstr("knows nothing of it"));
  EXPECT_NE(missing["n5"], "") << "its address is unknown";
  EXPECT_EQ(missing.size(), 4u);
  ASSERT_EQ(reply->jobs_size(), 1);
  EXPECT_THAT(Nodes(reply->jobs(0)), ElementsAre("n0"));
}

TEST_F(WiringReportTest, AForwardedRequestStaysHere) {
  Attach(1, "train", {"n1"});
  peers_->SetReporter("n1", ReporterOf("n1", {}));
  const auto reply = Report("", kForwarded);
  ASSERT_TRUE(reply.ok());
  EXPECT_THAT(asked_, IsEmpty());
  ASSERT_EQ(reply->jobs_size(), 1);
  EXPECT_THAT(reply->jobs(0).peer_nodes(), ElementsAre("n1"));
}

TEST_F(WiringReportTest, AJobThatEndedIsReported) {
  Attach(1, "train", {"n1"});
  peers_->SetReporter("n1", ReporterOf("n1", {}));
  jobs_->End(1);
  Settle();
  const auto reply = Report();
  ASSERT_TRUE(reply.ok());
  ASSERT_EQ(reply->jobs_size(), 1);
  EXPECT_EQ(reply->jobs(0).sums().attached(), 0u);
  EXPECT_THAT(Nodes(reply->jobs(0)), ElementsAre("n0", "n1"));
}

TEST_F(WiringReportTest, ManyNodesThatDoNotReportAreCounted) {
  std::vector<std::string> peers;
  for (int node = 0; node < ReportService::kMissingShown + 5; ++node) peers.push_back("far" + std::to_string(node));
  Attach(1, "train", peers);
  const auto reply = Report();
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(reply->missing_size(), ReportService::kMissingShown);
  EXPECT_EQ(reply->missing_more(), 5u);
}

TEST_F(WiringReportTest, JobsFaultsAndEventsOutliveTheDaemon) {
  const auto deliver = [&](plan::EvidenceRecordKind kind, uint64_t number, Nanos when, uint64_t bytes) {
    plan::EvidenceRecord record{};
    record.kind = static_cast<uint32_t>(kind);
    record.cause =
        static_cast<uint32_t>(kind == plan::EvidenceRecordKind::kLinkLost ? plan::EvidenceCause::kSilence : plan::EvidenceCause::kNone);
    record.received_bytes = number;
    record.time_ns = when;
    record.bytes = bytes;
    record.duration_ns = kind == plan::EvidenceRecordKind::kLinkPassed ? 280'000'000 : 0;
    plan::SetText("n1", record.peer_node);
    jobs_->Deliver(1, {record});
  };
  const auto attach = [&] {
    plan::AttachRequest request = JobWithRails({"10.0.1.1"});
    plan::SetText("train", request.job);
    request.process_id = 77;
    jobs_->Attach(1, 4711, request);
  };
  const auto restart = [&](uint64_t incarnation) {
    Settle();
    wiring_.reset();
    Settle();  // as the daemon does: what is to be written is written before it ends
    MakeDaemon(incarnation);
  };
  attach();
  const Nanos lost = core_.Now();
  deliver(plan::EvidenceRecordKind::kLinkLost, 1, lost, 0);
  core_.Advance(kNanosPerSecond);
  deliver(plan::EvidenceRecordKind::kLinkPassed, 2, lost + 5, 5);
  Settle();
  const uint64_t instance = wiring_->backend().events().instance();
  const uint64_t last = wiring_->backend().events().last_sequence();
  restart(2000);
  // It has not attached again yet.
  auto reply = Report("train", kForwarded);
  ASSERT_TRUE(reply.ok()) << reply.status();
  ASSERT_EQ(reply->jobs_size(), 1);
  EXPECT_EQ(reply->jobs(0).sums().ends_not_seen(), 1u);
  attach();
  // The plugin repeats all records.
  deliver(plan::EvidenceRecordKind::kLinkLost, 1, lost, 0);
  deliver(plan::EvidenceRecordKind::kLinkPassed, 2, lost + 5, 5);
  reply = Report("train", kForwarded);
  ASSERT_TRUE(reply.ok()) << reply.status();
  ASSERT_EQ(reply->jobs_size(), 1);
  const v1::JobSums& sums = reply->jobs(0).sums();
  EXPECT_EQ(sums.processes(), 1u);
  EXPECT_EQ(sums.attached(), 1u);
  EXPECT_EQ(sums.ends_not_seen(), 0u);
  ASSERT_EQ(sums.faults_size(), 1);
  EXPECT_EQ(sums.faults(0).links(), 1u);
  EXPECT_EQ(sums.faults(0).open_links(), 0u);
  EXPECT_EQ(sums.faults(0).stall_ns(), 280'000'000);
  // Events go on in the same history.
  EXPECT_EQ(wiring_->backend().events().instance(), instance);
  EXPECT_EQ(Count("daemon-started"), 2);
  EXPECT_EQ(Count("job-attached"), 2);
  EXPECT_GT(wiring_->backend().events().last_sequence(), last);
  // A crash: what was gathered before is there, a minute of totals may be missing.
  jobs_->End(1);
  core_.Advance(2 * kNanosPerSecond);
  Settle();
  restart(3000);
  reply = Report("train", kForwarded);
  ASSERT_EQ(reply->jobs_size(), 1);
  EXPECT_EQ(reply->jobs(0).sums().attached(), 0u);
  EXPECT_EQ(Count("job-ended"), 1);
}

TEST_F(WiringReportTest, ADegradedHalfHourOverARestartIsHalfAnHour) {
  constexpr Nanos kMinute = 60 * kNanosPerSecond;
  // The rails in use are reported when they change, and again to a daemon that is new.
  const auto deliver_use = [&](uint64_t number, Nanos when, uint64_t usable) {
    plan::EvidenceRecord record{};
    record.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kRailUse);
    record.received_bytes = number;
    record.time_ns = when;
    record.bytes = usable;
    record.replayed_bytes = 4;
    jobs_->Deliver(1, {record});
    Settle();
  };
  const auto attach = [&] {
    plan::AttachRequest request = JobWithRails({"10.0.1.1"});
    plan::SetText("train", request.job);
    request.process_id = 77;
    jobs_->Attach(1, 4711, request);
    Settle();
  };
  const auto reduced_ns = [&] {
    const auto reply = Report("train", kForwarded);
    int64_t sum = 0;
    for (const auto& one : reply->jobs(0).sums().reduced()) {
      EXPECT_EQ(one.usable(), 3u);
      EXPECT_EQ(one.rails(), 4u);
      sum += one.ended_ns() - one.begun_ns();
    }
    return sum;
  };
  attach();
  core_.Advance(kMinute);
  const Nanos lost = core_.Now();
  deliver_use(1, lost, 3);
  for (int minute = 1; minute <= 15; ++minute) {
    core_.Advance(kMinute);
    Settle();
  }
  EXPECT_NEAR(static_cast<double>(reduced_ns()), 15.0 * kMinute, 5e6) << "it lasts until now";
  wiring_.reset();
  Settle();
  MakeDaemon(2000);
  attach();
  deliver_use(1, lost, 3);
  for (int minute = 1; minute <= 15; ++minute) {
    core_.Advance(kMinute);
    Settle();
  }
  deliver_use(2, core_.Now(), 4);
  core_.Advance(kMinute);
  EXPECT_NEAR(static_cast<double>(reduced_ns()), 30.0 * kMinute, 5e6);
  jobs_->End(1);
  Settle();
  EXPECT_NEAR(static_cast<double>(reduced_ns()), 30.0 * kMinute, 5e6);
}

TEST_F(WiringReportTest, ReportsAreBoundedForEachShare) {
  Attach(1, "train", {"n9"});
  Caller user;
  user.kind = Caller::Kind::kLocal;
  user.uid = 1000;
  const auto ask = [&](const Caller& caller) {
    const auto status = std::make_shared<std::optional<absl::Status>>();  // an answer may come later
    wiring_->backend().Ask(v1::ReportJobsRequest(), caller,
                           [status](const absl::StatusOr<v1::ReportJobsReply>& reply) { *status = reply.status(); });
    Settle();
    return *status;
  };
  // Nobody knows where n9 is, so each is answered at once.
  for (int i = 0; i < ReportService::kReportsBurst; ++i) EXPECT_EQ(ask(user), absl::OkStatus());
  EXPECT_TRUE(absl::IsResourceExhausted(ask(user).value_or(absl::OkStatus())));
  EXPECT_EQ(ask(kRoot), absl::OkStatus()) << "others have shares of their own";
  core_.Advance(kNanosPerSecond);
  EXPECT_EQ(ask(user), absl::OkStatus());
  // Rounds that wait for other nodes.
  Know("n9");
  core_.Advance(10 * kNanosPerSecond);
  Settle();
  for (size_t i = 0; i < ReportService::kRoundsPerShareMax; ++i) EXPECT_EQ(ask(user), std::nullopt) << "it waits for n9";
  EXPECT_TRUE(absl::IsResourceExhausted(ask(user).value_or(absl::OkStatus())));
  core_.Advance(ReportService::kAnswerAfter);
  Settle();
  EXPECT_EQ(ask(user), std::nullopt) << "they have ended";
}

}  // namespace
}  // namespace r2cc::daemon
