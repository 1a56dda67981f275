#include "daemon/jobs/job_registry.h"

#include <gtest/gtest.h>

#include <cstring>

namespace r2cc::daemon {
namespace {

plan::AttachRequest TwoRails() {
  plan::AttachRequest request{};
  request.rail_count = 2;
  std::strcpy(request.job, "train\x1b[2J");
  std::strcpy(request.rails[0].name, "eth0");
  std::strcpy(request.rails[1].name, "eth1");
  return request;
}

plan::EvidenceRecord Of(plan::EvidenceRecordKind kind, uint32_t rail, const char* peer = "n1") {
  plan::EvidenceRecord record{};
  record.kind = static_cast<uint32_t>(kind);
  record.local_rail = rail;
  std::strcpy(record.peer_node, peer);
  return record;
}

TEST(JobRegistryTest, KeepsAJobsReports) {
  JobRegistry registry;
  plan::AttachRequest request = TwoRails();
  request.process_id = 0xabc;
  registry.Add(1, {4711, 1000}, request, {"rail0", ""}, 5);
  auto totals = Of(plan::EvidenceRecordKind::kRailTotals, 1);
  totals.bytes = 100;
  totals.received_bytes = 90;
  totals.replayed_bytes = 10;
  EXPECT_TRUE(registry.Record(1, totals));
  totals.bytes = 200;
  EXPECT_TRUE(registry.Record(1, totals)) << "totals since the start: the latest counts";
  EXPECT_TRUE(registry.Record(1, Of(plan::EvidenceRecordKind::kLinkFenced, 0, "n2")));
  EXPECT_TRUE(registry.Record(1, Of(plan::EvidenceRecordKind::kFlowOpened, 0, "n2")));
  registry.SetDropped(1, 3);

  const auto jobs = registry.Jobs();
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].pid(), 4711);
  EXPECT_EQ(jobs[0].uid(), 1000u);
  EXPECT_FALSE(jobs[0].pid_claimed());
  EXPECT_EQ(jobs[0].job(), "train?[2J") << "a job's name must not steer the operator's terminal";
  EXPECT_EQ(jobs[0].process_id(), "0000000000000abc");
  EXPECT_EQ(jobs[0].rails(0).nic(), "rail0");
  EXPECT_EQ(jobs[0].rails(0).failovers(), 1u);
  EXPECT_EQ(jobs[0].rails(1).nic(), "");
  EXPECT_EQ(jobs[0].rails(1).sent_bytes(), 200u);
  EXPECT_EQ(jobs[0].rails(1).replayed_bytes(), 10u);
  EXPECT_EQ(jobs[0].peer_nodes_size(), 2);
  EXPECT_EQ(jobs[0].evidence_dropped(), 3u);
  EXPECT_TRUE(registry.Remove(1, 9));
  EXPECT_FALSE(registry.Remove(1, 9));
}

constexpr int64_t kSecond = 1'000'000'000;
// CLOCK_REALTIME is ahead of CLOCK_MONOTONIC by so much.
constexpr int64_t kAhead = 1'000'000 * kSecond;
RecordTime At(int64_t ns) { return {ns, kAhead + ns}; }

// A plugin's records about a link of rail 0 that it lost at `lost`. `number`: of the first of the records.
struct Loss {
  plan::EvidenceRecord lost, fenced, passed;
};
Loss LossAt(int64_t lost, uint64_t number, int64_t stall, int64_t passed_after) {
  Loss loss;
  loss.lost = Of(plan::EvidenceRecordKind::kLinkLost, 0);
  loss.lost.cause = static_cast<uint32_t>(plan::EvidenceCause::kSilence);
  loss.lost.received_bytes = number;
  loss.lost.time_ns = lost;
  loss.fenced = Of(plan::EvidenceRecordKind::kLinkFenced, 0);
  loss.fenced.received_bytes = number + 1;
  loss.fenced.time_ns = lost + 3000;
  loss.fenced.duration_ns = 3000;
  loss.fenced.replayed_bytes = 500;
  loss.passed = Of(plan::EvidenceRecordKind::kLinkPassed, 0);
  loss.passed.received_bytes = number + 2;
  loss.passed.time_ns = lost + passed_after;
  loss.passed.bytes = static_cast<uint64_t>(passed_after);
  loss.passed.duration_ns = static_cast<uint64_t>(stall);
  return loss;
}

bool Put(JobRegistry* registry, JobId id, const plan::EvidenceRecord& record) {
  if (!registry->Record(id, record)) return false;
  registry->Note(id, record, At(record.time_ns));
  return true;
}

TEST(JobRegistryTest, AStallIsTheGapThatThePluginMeasured) {
  JobRegistry registry;
  registry.Add(1, {4711, 1000}, TwoRails(), {"rail0", ""}, 5);
  const Loss loss = LossAt(10 * kSecond, 1, 280'000'000, 20'000'000);
  ASSERT_TRUE(Put(&registry, 1, loss.lost));
  EXPECT_EQ(registry.Find(1)->faults(0).open_links(), 1u) << "no progress yet";
  ASSERT_TRUE(Put(&registry, 1, loss.fenced));
  ASSERT_TRUE(Put(&registry, 1, loss.passed));
  ASSERT_EQ(registry.Find(1)->faults_size(), 1);
  const v1::Job::Fault& fault = registry.Find(1)->faults(0);
  EXPECT_EQ(fault.cause(), "silence");
  EXPECT_EQ(fault.time_ns(), kAhead + 10 * kSecond);
  EXPECT_EQ(fault.stall_ns(), 280'000'000) << "not the 3 us since the fence";
  EXPECT_EQ(fault.stall_end_ns(), kAhead + 10 * kSecond + 20'000'000);
  EXPECT_EQ(fault.replayed_bytes(), 500u);
  EXPECT_EQ(fault.links(), 1u);
  EXPECT_EQ(fault.open_links(), 0u);
}

TEST(JobRegistryTest, ARepeatedReportCountsOnce) {
  JobRegistry registry;
  registry.Add(1, {4711, 1000}, TwoRails(), {"rail0", ""}, 5);
  const Loss loss = LossAt(10 * kSecond, 1, 7, 9);
  for (int i = 0; i < 2; ++i)
    for (const plan::EvidenceRecord& record : {loss.lost, loss.fenced, loss.passed}) EXPECT_EQ(Put(&registry, 1, record), i == 0);
  EXPECT_EQ(registry.Find(1)->faults(0).links(), 1u);
  EXPECT_EQ(registry.Find(1)->faults(0).replayed_bytes(), 500u);
  EXPECT_EQ(registry.Find(1)->watched_since_ns(), 0) << "nothing is missing";
}

TEST(JobRegistryTest, SumsSurviveARestartOfTheDaemon) {
  plan::AttachRequest request = TwoRails();
  request.process_id = 99;
  v1::KeptJobs kept;
  {
    JobRegistry registry;
    registry.Add(1, {4711, 1000}, request, {"rail0", ""}, kAhead);
    EXPECT_TRUE(registry.TakeChanged());
    EXPECT_FALSE(registry.TakeChanged());
    plan::EvidenceRecord run = Of(plan::EvidenceRecordKind::kRun, 0, "123");
    run.replayed_bytes = 1;
    run.bytes = 4;
    run.time_ns = kSecond;
    ASSERT_TRUE(Put(&registry, 1, run));
    const Loss loss = LossAt(10 * kSecond, 1, 7, 9);
    for (const plan::EvidenceRecord& record : {loss.lost, loss.fenced, loss.passed}) ASSERT_TRUE(Put(&registry, 1, record));
    EXPECT_TRUE(registry.TakeChanged());
    registry.Add(2, {1, 1000}, TwoRails(), {"rail0", ""}, 5);
    registry.Remove(2, kAhead + 9 * kSecond);
    kept = registry.ToKeep(kAhead + 20 * kSecond);
  }
  JobRegistry registry;
  registry.Restore(kept, kAhead + 25 * kSecond);
  ASSERT_EQ(registry.all_ended().size(), 2u);
  EXPECT_TRUE(registry.all_ended().back().end_not_seen()) << "as long as it does not attach again";
  EXPECT_EQ(registry.all_ended().back().ended_ns(), kAhead + 20 * kSecond);
  registry.Add(7, {4711, 1000}, request, {"rail0", ""}, kAhead + 30 * kSecond);
  EXPECT_EQ(registry.all_ended().size(), 1u);
  // The plugin repeats its records, and adds those of the meantime.
  const Loss before = LossAt(10 * kSecond, 1, 7, 9);
  const Loss meanwhile = LossAt(22 * kSecond, 4, 70, 90);
  for (const Loss& loss : {before, meanwhile})
    for (const plan::EvidenceRecord& record : {loss.lost, loss.fenced, loss.passed})
      EXPECT_EQ(Put(&registry, 7, record), record.received_bytes >= 4) << record.received_bytes;
  const v1::Job& job = *registry.Find(7);
  EXPECT_EQ(job.faults_size(), 2);
  EXPECT_EQ(job.run(), "123");
  EXPECT_TRUE(job.run_is_shared());
  EXPECT_EQ(job.rank_plus_one(), 4u);
  EXPECT_EQ(job.ended_ns(), 0);
  EXPECT_FALSE(job.end_not_seen());
  EXPECT_EQ(job.watched_since_ns(), 0);
  EXPECT_EQ(job.attached_ns(), kAhead);
}

TEST(JobRegistryTest, OldRunsAreNotRestored) {
  v1::KeptJobs kept;
  kept.add_ended()->set_ended_ns(kAhead);
  kept.add_gave_up()->set_ended_ns(kAhead);
  JobRegistry registry;
  registry.Restore(kept, kAhead + JobRegistry::kEndedAgeMaxNs + 1);
  EXPECT_TRUE(registry.all_ended().empty());
  EXPECT_TRUE(registry.ended().empty());
}

TEST(JobRegistryTest, UnwatchedTimeIsReported) {
  JobRegistry registry;
  registry.Add(1, {1}, TwoRails(), {}, 77);
  // Its plugin keeps the last 1,024 records only.
  ASSERT_TRUE(Put(&registry, 1, LossAt(10 * kSecond, 5000, 7, 9).lost));
  EXPECT_EQ(registry.Find(1)->watched_since_ns(), 77);
  // A plugin of 0.2.0: it does not report its run, and has moved something before its first record.
  registry.Add(2, {2}, TwoRails(), {}, 78);
  plan::EvidenceRecord totals = Of(plan::EvidenceRecordKind::kRailTotals, 0);
  totals.bytes = 9;
  ASSERT_TRUE(Put(&registry, 2, totals));
  EXPECT_EQ(registry.Find(2)->watched_since_ns(), 78);
  registry.Add(3, {3}, TwoRails(), {}, 79);
  ASSERT_TRUE(Put(&registry, 3, Of(plan::EvidenceRecordKind::kRun, 0, "123")));
  ASSERT_TRUE(Put(&registry, 3, totals));
  EXPECT_EQ(registry.Find(3)->watched_since_ns(), 0) << "what happened before is in the numbered records";
}

TEST(JobRegistryTest, FailuresFewerRailsAndTheEnd) {
  JobRegistry registry;
  registry.Add(1, {1}, TwoRails(), {"rail0", "rail1"}, 0);
  plan::EvidenceRecord use = Of(plan::EvidenceRecordKind::kRailUse, 0);
  use.received_bytes = 1;
  use.bytes = 1;
  use.replayed_bytes = 2;
  use.time_ns = 10 * kSecond;
  ASSERT_TRUE(Put(&registry, 1, use));
  plan::EvidenceRecord failed = Of(plan::EvidenceRecordKind::kFailed, 0, "n1");
  failed.bytes = static_cast<uint64_t>(plan::Failure::kPeerGone);
  for (uint64_t number = 2; number < 50; ++number) {
    failed.received_bytes = number;
    ASSERT_TRUE(Put(&registry, 1, failed));
  }
  ASSERT_TRUE(Put(&registry, 1, Of(plan::EvidenceRecordKind::kEnding, 0)));
  registry.Remove(1, kAhead + 40 * kSecond);
  const v1::Job& job = registry.all_ended().back();
  ASSERT_EQ(job.reduced_size(), 1);
  EXPECT_EQ(job.reduced(0).begun_ns(), kAhead + 10 * kSecond);
  EXPECT_EQ(job.reduced(0).ended_ns(), kAhead + 40 * kSecond);
  EXPECT_EQ(job.reduced(0).usable(), 1u);
  EXPECT_EQ(job.failures_size(), JobRegistry::kFailuresMax);
  EXPECT_EQ(job.failures(0).peer_node(), "n1");
  EXPECT_TRUE(job.ended_in_order());
}

TEST(JobRegistryTest, DropsWhatCannotBe) {
  JobRegistry registry;
  registry.Add(1, {1}, TwoRails(), {"a", "b"}, 0);
  EXPECT_FALSE(registry.Record(1, Of(plan::EvidenceRecordKind::kRailTotals, 2)));
  EXPECT_FALSE(registry.Record(1, Of(plan::EvidenceRecordKind::kRailTotals, UINT32_MAX)));
  EXPECT_FALSE(registry.Record(1, Of(static_cast<plan::EvidenceRecordKind>(99), 0)));
  EXPECT_FALSE(registry.Record(2, Of(plan::EvidenceRecordKind::kRailTotals, 0)));
}

TEST(JobRegistryTest, PeersAreBounded) {
  JobRegistry registry;
  registry.Add(1, {1}, TwoRails(), {}, 0);
  for (size_t i = 0; i < JobRegistry::kPeersPerUserMax + 10; ++i)
    registry.Record(1, Of(plan::EvidenceRecordKind::kFlowOpened, 0, ("n" + std::to_string(i)).c_str()));
  EXPECT_EQ(static_cast<size_t>(registry.Find(1)->peer_nodes_size()), JobRegistry::kPeersPerUserMax);
}

TEST(JobRegistryTest, AJobThatGaveUpIsKept) {
  JobRegistry registry;
  registry.Add(1, {1, 1000}, TwoRails(), {}, 0);
  registry.Add(2, {2, 1000}, TwoRails(), {}, 0);
  v1::GaveUp gave_up;
  gave_up.set_peer_node("n1");
  for (int i = 0; i < 100; ++i) registry.GiveUp(1, gave_up);
  EXPECT_EQ(registry.Find(1)->gave_up_size(), JobRegistry::kGaveUpMax);
  registry.Remove(1, 77);
  registry.Remove(2, 78);
  ASSERT_EQ(registry.ended().size(), 1u) << "a process that ended well is forgotten";
  EXPECT_EQ(registry.ended()[0].pid(), 1);
  EXPECT_EQ(registry.ended()[0].ended_ns(), 77);
  // One user's many do not push out another's.
  for (JobId id = 10; id < 1000; ++id) {
    registry.Add(id, {5, 2000}, TwoRails(), {}, 0);
    registry.GiveUp(id, gave_up);
    registry.Remove(id, static_cast<int64_t>(id));
  }
  ASSERT_EQ(registry.ended().size(), 1 + JobRegistry::kEndedPerUserMax);
  EXPECT_EQ(registry.ended()[0].uid(), 1000u);
  EXPECT_EQ(registry.ended().back().ended_ns(), 999);
}

TEST(JobRegistryTest, LinksOfOneRailThatGoTogetherAreOneFault) {
  JobRegistry registry;
  registry.Add(1, {4711, 1000}, TwoRails(), {"rail0", ""}, 5);
  auto fenced = Of(plan::EvidenceRecordKind::kLinkFenced, 0);
  fenced.cause = static_cast<uint32_t>(plan::EvidenceCause::kLinkDown);
  fenced.duration_ns = 7;
  fenced.replayed_bytes = 100;
  registry.Note(1, fenced, At(10 * kSecond));
  fenced.cause = static_cast<uint32_t>(plan::EvidenceCause::kPeerFenced);
  fenced.duration_ns = 9;
  registry.Note(1, fenced, At(10 * kSecond + 5));
  registry.Note(1, fenced, At(20 * kSecond));
  fenced.cause = static_cast<uint32_t>(plan::EvidenceCause::kRetired);
  registry.Note(1, fenced, At(30 * kSecond));
  fenced.local_rail = 1;
  fenced.cause = static_cast<uint32_t>(plan::EvidenceCause::kSilence);
  registry.Note(1, fenced, At(10 * kSecond));
  const v1::Job job = registry.Jobs()[0];
  ASSERT_EQ(job.faults_size(), 3);
  EXPECT_EQ(job.faults(0).nic(), "rail0");
  EXPECT_EQ(job.faults(0).cause(), "link-down");
  EXPECT_EQ(job.faults(0).links(), 2u);
  EXPECT_EQ(job.faults(0).stall_ns(), 9);
  EXPECT_EQ(job.faults(0).replayed_bytes(), 200u);
  for (int i = 0; i < 100; ++i) registry.Note(1, fenced, At((100 + 10 * i) * kSecond));
  EXPECT_EQ(registry.Jobs()[0].faults_size(), JobRegistry::kFaultsMax);
  EXPECT_EQ(registry.Jobs()[0].faults_untold(), 39u);
}

TEST(JobRegistryTest, EveryJobThatEndedIsKeptForAWhile) {
  JobRegistry registry;
  for (JobId id = 1; id <= JobRegistry::kEndedPerUserMax + 1; ++id) {
    registry.Add(id, {static_cast<int32_t>(id), 1000}, TwoRails(), {"rail0", ""}, 5);
    registry.Remove(id, 9);
  }
  v1::ListJobsRequest request;
  request.set_all_ended(true);
  const v1::ListJobsReply reply = registry.Page(request, 1 << 20);
  ASSERT_EQ(reply.jobs_size(), static_cast<int>(JobRegistry::kEndedPerUserMax));
  EXPECT_EQ(reply.jobs(0).pid(), 2);
  EXPECT_EQ(reply.jobs(0).ended_ns(), 9);
  request.set_all_ended(false);
  request.set_ended(true);
  EXPECT_EQ(registry.Page(request, 1 << 20).jobs_size(), 0) << "none of them gave up on a peer";
}

TEST(JobRegistryTest, AListIsSiftedAndBeginsWithHowManyThereAre) {
  JobRegistry registry;
  for (JobId id = 1; id <= 5; ++id) registry.Add(id, {static_cast<int32_t>(id), id < 3 ? 1000u : 0u}, TwoRails(), {"r0", "r1"}, 0);
  registry.SetDropped(5, 1);
  v1::ListJobsRequest request;
  request.set_uid(0);
  v1::ListJobsReply reply = registry.Page(request, 1);
  EXPECT_EQ(reply.summary().processes(), 5u);
  EXPECT_EQ(reply.summary().users(), 2u);
  EXPECT_EQ(reply.summary().bad(), 1u);
  std::vector<int> pids;
  while (true) {
    for (const v1::Job& job : reply.jobs()) pids.push_back(job.pid());
    if (!reply.more()) break;
    request.set_skip(static_cast<uint32_t>(pids.size()));
    reply = registry.Page(request, 1);
    EXPECT_FALSE(reply.has_summary());
  }
  EXPECT_EQ(pids, (std::vector<int>{3, 4, 5})) << "page by page";
  request.set_skip(0);
  request.set_bad(true);
  EXPECT_EQ(registry.Page(request, 1 << 20).jobs_size(), 1);
}

}  // namespace
}  // namespace r2cc::daemon
