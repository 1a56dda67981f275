// The metrics of a whole daemon.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "daemon/metrics/table.h"
#include "daemon/wiring_rig.h"

namespace r2cc::daemon {
namespace {

using testing::HasSubstr;
using testing::Not;

class MetricsServiceTest : public WiringTest {
 protected:
  MetricFacts Metrics() {
    MetricFacts facts;
    wiring_->backend().Ask(MetricsRequest(), Caller(),
                           [&](absl::StatusOr<std::shared_ptr<const MetricFacts>> answer) { facts = **answer; });
    Settle();
    return facts;
  }
  void DeliverSent(JobId job, uint64_t bytes) {
    plan::EvidenceRecord totals{};
    totals.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kRailTotals);
    totals.time_ns = core_.Now();
    totals.bytes = bytes;
    jobs_->Deliver(job, {totals});
    Settle();
  }
  void DeliverFenced(JobId job) {
    plan::EvidenceRecord fenced{};
    fenced.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kLinkFenced);
    fenced.cause = static_cast<uint32_t>(plan::EvidenceCause::kSocketError);
    fenced.time_ns = core_.Now() - 5;
    fenced.duration_ns = 3'000'000;
    plan::SetText("n1", fenced.peer_node);
    plan::SetText("rail0", fenced.peer_nic);
    jobs_->Deliver(job, {fenced});
    Settle();
  }
};

TEST_F(MetricsServiceTest, ShowsTheNodesHealth) {
  const MetricFacts facts = Metrics();
  EXPECT_EQ(facts.node, "n0");
  ASSERT_EQ(facts.nics.size(), 3u);
  EXPECT_EQ(facts.nics[0].nic, "rail0");
  EXPECT_EQ(facts.nics[0].device, "eth0");
  EXPECT_EQ(facts.nics[0].port, "1");
  EXPECT_EQ(facts.peers_lost, 2u);
  EXPECT_FALSE(facts.plan_refused);
  EXPECT_GT(facts.plan_published_s, 0);
  EXPECT_EQ(facts.plan_entries, 3u);
  const std::string text = RenderMetrics(facts, {});
  EXPECT_THAT(text, HasSubstr("r2cc_nic_weight_ratio{nic=\"rail0\",device=\"eth0\",port=\"1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("r2cc_nodes{status=\"unreachable\"} 0\n"));
}

TEST_F(MetricsServiceTest, FollowsWhatOperatorsDo) {
  ASSERT_TRUE(Act("n0", "rail0", v1::DRAIN).ok());
  core_.RunPosted();
  const std::string text = RenderMetrics(Metrics(), {});
  EXPECT_THAT(text, HasSubstr("r2cc_nic_state{nic=\"rail0\",device=\"eth0\",port=\"1\",state=\"DRAINED\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("r2cc_nic_weight_ratio{nic=\"rail0\",device=\"eth0\",port=\"1\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("r2cc_operator_actions_total{action=\"drain\"} 1\n"));
}

TEST_F(MetricsServiceTest, BytesOfJobsOnlyGrow) {
  jobs_->Attach(1, 4711, JobWithRails({"10.0.0.1", "10.0.1.1"}));
  DeliverSent(1, 100);
  EXPECT_EQ(Metrics().nics[0].sent_bytes, 100u);
  DeliverSent(1, 150);
  DeliverFenced(1);
  core_.RunPosted();
  MetricFacts facts = Metrics();
  EXPECT_EQ(facts.nics[0].sent_bytes, 150u);
  EXPECT_EQ(facts.nics[0].failovers, 1u);
  EXPECT_EQ(facts.nics[0].verdicts, 1u) << "one job's report makes a NIC suspect";
  EXPECT_EQ(facts.failover_seconds.counts[1], 1u) << "3 ms";
  EXPECT_EQ(facts.failovers_by_cause.size(), 1u);
  ASSERT_EQ(facts.jobs.size(), 1u);
  EXPECT_EQ(facts.jobs[0].job, "train");
  EXPECT_EQ(facts.jobs[0].rails, 2u);
  jobs_->End(1);
  Settle();
  jobs_->Attach(2, 4712, JobWithRails({"10.0.0.1"}));
  DeliverSent(2, 10);
  facts = Metrics();
  EXPECT_EQ(facts.nics[0].sent_bytes, 160u);
  EXPECT_EQ(facts.jobs_attached, 1u);
}

TEST_F(MetricsServiceTest, JobsBeyondSomeAreOne) {
  for (JobId job = 1; job <= 40; ++job) {
    plan::AttachRequest request = JobWithRails({"10.0.0.1"});
    plan::SetText("job" + std::to_string(job), request.job);
    jobs_->Attach(job, static_cast<int32_t>(4000 + job), request);
  }
  const MetricFacts facts = Metrics();
  EXPECT_EQ(facts.jobs.size(), kJobFactsMax + 1);
  uint32_t processes = 0;
  for (const JobFacts& job : facts.jobs) processes += job.processes;
  EXPECT_EQ(processes, 40u);
}

}  // namespace
}  // namespace r2cc::daemon
