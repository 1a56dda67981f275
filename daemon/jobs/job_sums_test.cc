#include "daemon/jobs/job_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace r2cc::daemon {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kHour = 3600 * kSecond;
constexpr int64_t kBegin = 1'700'000'000 * kSecond;

v1::Job Process(const std::string& name, int64_t ended) {
  v1::Job job;
  job.set_job(name);
  job.set_uid(7);
  job.set_attached_ns(kBegin);
  job.set_ended_ns(ended);
  v1::RailTotals* rail = job.add_rails();
  rail->set_rail("eth1");
  rail->set_nic("rail0");
  rail->set_sent_bytes(3'600'000);
  rail->set_received_bytes(7);
  rail->set_replayed_bytes(1000);
  return job;
}

// The only run of that name.
const v1::ReportJobsReply::Whole& RunOf(const WholeJobs& jobs, const std::string& name) {
  const v1::ReportJobsReply::Whole* found = nullptr;
  for (const auto& [key, whole] : jobs) {
    if (std::get<1>(key) != name) continue;
    EXPECT_EQ(found, nullptr) << "two runs of " << name;
    found = &whole;
  }
  return *found;
}

void AddLoss(v1::Job* job, const std::string& nic, const std::string& cause, int64_t when, int64_t stall) {
  v1::Job::Fault* fault = job->add_faults();
  fault->set_rail("eth1");
  fault->set_nic(nic);
  fault->set_cause(cause);
  fault->set_time_ns(when);
  fault->set_stall_ns(stall);
  fault->set_replayed_bytes(500);
  fault->set_links(1);
}

TEST(JobSums, TheOperationsThatWaitedAreAddedUpWithTheirNodes) {
  v1::Job one = Process("train", 0), other = Process("train", 0);
  AddLoss(&one, "rail0", "silence", kBegin + 60 * kSecond, 20);
  AddLoss(&other, "rail0", "silence", kBegin + 60 * kSecond, 30);
  v1::HeldOperation held;
  held.set_function("AllReduce");
  held.set_number(12);
  held.set_held_ns(5);
  *one.mutable_faults(0)->add_held() = held;
  held.set_rank(1);
  held.set_held_ns(9);
  *other.mutable_faults(0)->add_held() = held;
  WholeJobs jobs, elsewhere;
  AddProcess(one, "n0", kBegin + kHour, &jobs);
  AddProcess(other, "n1", kBegin + kHour, &elsewhere);
  v1::ReportJobsReply::Whole reported = RunOf(elsewhere, "train");
  // The text of another daemon is not believed.
  reported.mutable_sums()->mutable_faults(0)->mutable_held(0)->set_function("All\x1bReduce");
  reported.mutable_sums()->mutable_faults(0)->mutable_held(0)->set_node("n7");
  reported.mutable_sums()->mutable_faults(0)->set_held_more(2);
  ASSERT_TRUE(AddNode(reported, "n1", 0, kBegin + kHour, &jobs));
  const v1::Job::Fault& fault = RunOf(jobs, "train").sums().faults(0);
  ASSERT_EQ(fault.held_size(), 2);
  EXPECT_EQ(fault.held(0).function(), "All?Reduce");
  EXPECT_EQ(fault.held(0).node(), "n1");
  EXPECT_EQ(fault.held(0).rank(), 1u);
  EXPECT_EQ(fault.held(1).node(), "n0");
  EXPECT_EQ(fault.held_more(), 2u);
}

TEST(JobSums, FaultsOfTheProcessesAreOne) {
  v1::Job one = Process("train", kBegin + kHour);
  v1::Job other = Process("train", 0);
  AddLoss(&one, "rail0", "silence", kBegin + 60 * kSecond + 5, 20);
  AddLoss(&other, "rail0", "link-down", kBegin + 60 * kSecond, 30);
  AddLoss(&other, "rail1", "link-down", kBegin + 60 * kSecond, 10);
  AddLoss(&other, "rail0", "link-down", kBegin + 90 * kSecond, 40);
  AddLoss(&other, "", "link-down", kBegin + 90 * kSecond, 50);
  one.add_peer_nodes("n1");
  other.add_peer_nodes("n1");
  other.add_peer_nodes("n2");
  WholeJobs jobs;
  AddProcess(one, "n0", kBegin + 2 * kHour, &jobs);
  AddProcess(other, "n0", kBegin + 2 * kHour, &jobs);
  AddProcess(Process("other", 0), "n0", kBegin + 2 * kHour, &jobs);
  ASSERT_THAT(jobs, SizeIs(2));
  const v1::ReportJobsReply::Whole& whole = RunOf(jobs, "train");
  const v1::JobSums& sums = whole.sums();
  EXPECT_EQ(sums.processes(), 2u);
  EXPECT_EQ(sums.attached(), 1u);
  EXPECT_EQ(sums.begun_ns(), kBegin);
  EXPECT_EQ(sums.ended_ns(), kBegin + 2 * kHour);
  EXPECT_EQ(sums.running_ns(), 3 * kHour);
  EXPECT_EQ(sums.sent_bytes(), 7'200'000u);
  EXPECT_EQ(sums.replayed_bytes(), 2000u);
  ASSERT_EQ(sums.faults_size(), 4);
  EXPECT_EQ(sums.faults(0).cause(), "link-down") << "the first sign";
  EXPECT_EQ(sums.faults(0).stall_ns(), 30);
  EXPECT_EQ(sums.faults(0).replayed_bytes(), 1000u);
  EXPECT_EQ(sums.faults(3).nic(), "eth1") << "one that is no NIC of the node has its own name";
  EXPECT_THAT(whole.peer_nodes(), ElementsAre("n1", "n2"));
  ASSERT_EQ(whole.nodes_size(), 1);
  EXPECT_EQ(whole.nodes(0).node(), "n0");
  EXPECT_EQ(whole.nodes(0).faults(), 4u);
}

// The two ends of a drill: which of them is first depends on clocks that are measured again after a restart, and the cause was another
// then.
TEST(JobSums, TheCauseIsThatOfTheFaultyEnd) {
  for (const int64_t later : {-5'000'000, 5'000'000}) {
    WholeJobs jobs;
    v1::Job one = Process("train", kBegin + kHour), other = Process("train", kBegin + kHour);
    AddLoss(&one, "rail0", "page-notice", kBegin + 60 * kSecond, 30);
    AddLoss(&one, "rail1", "socket-error", kBegin + 90 * kSecond, 30);
    AddLoss(&other, "rail0", "socket-error", kBegin + 60 * kSecond + later, 40);
    AddLoss(&other, "rail1", "silence", kBegin + 90 * kSecond + later, 40);
    AddProcess(one, "n0", kBegin + kHour, &jobs);
    AddProcess(other, "n0", kBegin + kHour, &jobs);
    const v1::JobSums& sums = RunOf(jobs, "train").sums();
    ASSERT_EQ(sums.faults_size(), 2);
    EXPECT_EQ(sums.faults(0).cause(), "page-notice");
    EXPECT_EQ(sums.faults(1).cause(), "silence");
    EXPECT_EQ(sums.faults(0).time_ns(), kBegin + 60 * kSecond + std::min<int64_t>(later, 0)) << "the first sign";
  }
}

TEST(JobSums, ALossOnPurposeIsOneOnAllNodesUnlessOneSawAFault) {
  v1::Job drilled = Process("train", 0), peer = Process("train", 0), cut = Process("train", 0);
  AddLoss(&drilled, "rail0", "page-notice", kBegin + 60 * kSecond, 20);
  drilled.mutable_faults(0)->set_on_purpose(true);
  AddLoss(&peer, "rail0", "peer-fenced", kBegin + 61 * kSecond, 30);
  WholeJobs jobs;
  AddProcess(peer, "n1", kBegin + kHour, &jobs);
  AddProcess(drilled, "n0", kBegin + kHour, &jobs);
  ASSERT_THAT(RunOf(jobs, "train").sums().faults(), SizeIs(1));
  EXPECT_TRUE(RunOf(jobs, "train").sums().faults(0).on_purpose());
  v1::ReportJobsReply::Whole reported;
  reported.mutable_sums()->set_job("train");
  reported.mutable_sums()->set_uid(7);
  reported.mutable_sums()->set_begun_ns(kBegin);
  reported.mutable_sums()->set_ended_ns(kBegin + kHour);
  *reported.mutable_sums()->add_faults() = drilled.faults(0);
  reported.mutable_sums()->mutable_faults(0)->set_time_ns(kBegin + 600 * kSecond);
  ASSERT_TRUE(AddNode(reported, "n2", 0, kBegin + kHour, &jobs));
  EXPECT_TRUE(RunOf(jobs, "train").sums().faults(1).on_purpose()) << "another daemon's report";
  AddLoss(&cut, "rail0", "link-down", kBegin + 60 * kSecond, 20);
  AddProcess(cut, "n3", kBegin + kHour, &jobs);
  EXPECT_FALSE(RunOf(jobs, "train").sums().faults(0).on_purpose()) << "its cable was pulled at the same time";
}

TEST(JobSums, AFaultOfSeveralNodesIsOneAndClocksAreSetRight) {
  WholeJobs here, there;
  v1::Job one = Process("train", kBegin + kHour);
  AddLoss(&one, "rail0", "link-down", kBegin + 60 * kSecond, 30);
  AddProcess(one, "n0", kBegin + kHour, &here);
  // A node whose clock is 100 s ahead, one that saw it a little later, and one more.
  v1::Job other = Process("train", kBegin + 100 * kSecond + 2 * kHour);
  other.set_attached_ns(kBegin + 100 * kSecond - 1);
  AddLoss(&other, "rail0", "silence", kBegin + 161 * kSecond, 70);
  AddLoss(&other, "rail1", "silence", kBegin + 161 * kSecond, 5);
  v1::GaveUp* gave_up = other.add_gave_up();
  gave_up->set_time_ns(kBegin + 400 * kSecond);
  gave_up->set_lasted_ns(30 * kSecond);
  gave_up->set_text("job train gave up on n2");
  AddProcess(other, "n1", kBegin + kHour, &there);
  ASSERT_TRUE(AddNode(RunOf(there, "train"), "n1", 100 * kSecond, kBegin + 3 * kHour, &here));
  const v1::ReportJobsReply::Whole& whole = RunOf(here, "train");
  const v1::JobSums& sums = whole.sums();
  EXPECT_EQ(sums.processes(), 2u);
  EXPECT_EQ(sums.begun_ns(), kBegin - 1);
  EXPECT_EQ(sums.ended_ns(), kBegin + 2 * kHour);
  EXPECT_EQ(sums.sent_bytes(), 7'200'000u);
  EXPECT_EQ(sums.received_bytes(), 14u);
  ASSERT_EQ(sums.faults_size(), 2);
  EXPECT_EQ(sums.faults(0).time_ns(), kBegin + 60 * kSecond);
  EXPECT_EQ(sums.faults(0).cause(), "link-down");
  EXPECT_EQ(sums.faults(0).stall_ns(), 70);
  EXPECT_EQ(sums.faults(0).replayed_bytes(), 1000u);
  EXPECT_THAT(sums.faults(0).nodes(), ElementsAre("n0", "n1"));
  EXPECT_THAT(sums.faults(1).nodes(), ElementsAre("n1"));
  EXPECT_THAT(sums.gave_up(), ElementsAre("job train gave up on n2"));
  EXPECT_EQ(sums.gave_up_begun_ns(), kBegin + 270 * kSecond);
  ASSERT_EQ(whole.nodes_size(), 2);
  EXPECT_EQ(whole.nodes(1).node(), "n1");
  EXPECT_EQ(whole.nodes(1).sent_bytes(), 3'600'000u);
  EXPECT_EQ(whole.nodes(1).faults(), 2u);
}

TEST(JobSums, ARunOfAnotherJobIsNotTaken) {
  WholeJobs here, there;
  AddProcess(Process("train", 0), "n0", kBegin + 1, &here);
  AddProcess(Process("another", 0), "n1", kBegin + 1, &there);
  EXPECT_FALSE(AddNode(there.begin()->second, "n1", 0, kBegin + 1, &here));
  EXPECT_EQ(RunOf(here, "train").sums().processes(), 1u);
}

TEST(JobSums, TheReportOfAnotherNodeIsBoundedAndClean) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  WholeJobs here;
  AddProcess(Process("train", 0), "n0", kBegin + 1, &here);
  v1::ReportJobsReply::Whole reported;
  v1::JobSums& sums = *reported.mutable_sums();
  sums.set_job("train");
  sums.set_uid(7);
  sums.set_begun_ns(-kMost);
  sums.set_ended_ns(kMost);
  sums.set_running_ns(kMost);
  sums.set_gave_up_begun_ns(-kMost);
  for (int i = 0; i < 1000; ++i) {
    v1::Job::Fault& fault = *sums.add_faults();
    fault.set_nic("\x1b[31m" + std::to_string(i));
    fault.set_time_ns(i % 2 == 0 ? kMost : -kMost);
    fault.set_stall_ns(kMost);
    fault.add_nodes("liar");
    sums.add_gave_up(std::string(100'000, 'x'));
  }
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(AddNode(reported, "n1", 0, kBegin, &here));
  for (const int64_t ahead : {kMost, -kMost}) AddNode(reported, "n1", ahead, kBegin, &here);
  const v1::JobSums& after = RunOf(here, "train").sums();
  EXPECT_EQ(after.faults_size(), kSummedFaultsMax);
  EXPECT_EQ(after.faults(0).nic().find('\x1b'), std::string::npos);
  EXPECT_THAT(after.faults(0).nodes(), ElementsAre("n1"));
  int64_t stalls = 0;
  for (const v1::Job::Fault& fault : after.faults()) ASSERT_FALSE(__builtin_add_overflow(stalls, fault.stall_ns(), &stalls));
  EXPECT_EQ(after.gave_up_size(), kGaveUpLinesMax);
  EXPECT_EQ(after.gave_up_size() + after.gave_up_more(), 5000u) << "of those with the strange clocks, too";
  EXPECT_LT(after.gave_up(0).size(), 2000u);
  EXPECT_EQ(after.running_ns(), kMost);
}

TEST(JobSums, ManyNodesOfOneFaultAreCounted) {
  WholeJobs here;
  for (int node = 0; node < 20; ++node) {
    v1::Job process = Process("train", kBegin + kHour);
    AddLoss(&process, "rail0", "silence", kBegin, 1);
    WholeJobs there;
    AddProcess(process, "n" + std::to_string(node), kBegin, &there);
    if (node == 0)
      here = std::move(there);
    else
      ASSERT_TRUE(AddNode(there.begin()->second, "n" + std::to_string(node), 0, kBegin + kHour, &here));
  }
  const v1::JobSums& sums = here.begin()->second.sums();
  ASSERT_EQ(sums.faults_size(), 1);
  EXPECT_EQ(sums.faults(0).nodes_size(), kFaultNodesMax);
  EXPECT_EQ(sums.faults(0).nodes_more(), 20u - kFaultNodesMax);
}

TEST(JobSums, TwoRunsOfOneJobAreTwo) {
  WholeJobs jobs;
  const auto add = [&](int64_t begun, int64_t ended, const std::string& run, bool shared) {
    v1::Job process = Process("train", kBegin + ended * kSecond);
    process.set_attached_ns(kBegin + begun * kSecond);
    process.set_process_id(std::to_string(begun));
    process.set_run(run);
    process.set_run_is_shared(shared);
    AddProcess(process, "n0", kBegin + kHour, &jobs);
  };
  add(0, 100, "", false);
  add(1, 99, "", false);
  EXPECT_THAT(jobs, SizeIs(1)) << "they ran at the same time";
  add(101, 200, "", false);
  EXPECT_THAT(jobs, SizeIs(2)) << "all of the run before had ended";
  add(300, 400, "123", true);
  add(300, 401, "124", true);
  EXPECT_THAT(jobs, SizeIs(4)) << "two jobs of one name at one time, by their launcher's ids";
  add(350, 360, "123", true);
  EXPECT_THAT(jobs, SizeIs(4));
  EXPECT_EQ(jobs.at({7, "train", "123"}).sums().processes(), 2u);
}

TEST(JobSums, AnotherNodesRunIsTheOneAtTheSameTime) {
  WholeJobs here;
  for (const int64_t begun : {0, 1000, 2000}) {
    v1::Job process = Process("train", kBegin + (begun + 500) * kSecond);
    process.set_attached_ns(kBegin + begun * kSecond);
    AddProcess(process, "n0", kBegin + kHour, &here);
  }
  ASSERT_THAT(here, SizeIs(3));
  const auto reported = [](int64_t begun, int64_t ended) {
    v1::ReportJobsReply::Whole whole;
    whole.mutable_sums()->set_job("train");
    whole.mutable_sums()->set_uid(7);
    whole.mutable_sums()->set_processes(5);
    whole.mutable_sums()->set_begun_ns(kBegin + begun * kSecond);
    whole.mutable_sums()->set_ended_ns(kBegin + ended * kSecond);
    return whole;
  };
  ASSERT_TRUE(AddNode(reported(1001, 1499), "n1", 0, kBegin + kHour, &here));
  for (const auto& [key, whole] : here) EXPECT_EQ(whole.sums().processes(), whole.sums().begun_ns() == kBegin + 1000 * kSecond ? 6u : 1u);
  EXPECT_FALSE(AddNode(reported(700, 900), "n1", 0, kBegin + kHour, &here)) << "a run that had no process here";
}

TEST(JobSums, OpenFaultsAndCausesAreAddedUp) {
  WholeJobs here, there;
  v1::Job one = Process("train", 0);
  AddLoss(&one, "rail0", "silence", kBegin + 60 * kSecond, 0);
  one.mutable_faults(0)->set_open_links(2);
  AddProcess(one, "n0", kBegin + kHour, &here);
  v1::Job other = Process("train", kBegin + kHour / 2);
  AddLoss(&other, "rail0", "silence", kBegin + 60 * kSecond, 70);
  other.mutable_faults(0)->set_open_links(1);
  other.mutable_faults(0)->set_stall_end_ns(kBegin + 61 * kSecond);
  other.set_says_run(true);
  other.set_rank_plus_one(4);
  other.set_watched_since_ns(kBegin + 5);
  v1::JobFailure& failure = *other.add_failures();
  failure.set_peer_node("n2");
  failure.set_failure(1);
  failure.set_time_ns(kBegin + 70 * kSecond);
  v1::ReducedRails& reduced = *other.add_reduced();
  reduced.set_begun_ns(kBegin + 60 * kSecond);
  reduced.set_usable(3);
  reduced.set_rails(4);
  AddProcess(other, "n1", kBegin + kHour, &there);
  ASSERT_TRUE(AddNode(RunOf(there, "train"), "n1", kSecond, kBegin + kHour, &here));
  const v1::JobSums& sums = RunOf(here, "train").sums();
  ASSERT_EQ(sums.faults_size(), 1);
  EXPECT_EQ(sums.faults(0).open_links(), 3u);
  EXPECT_EQ(sums.faults(0).stall_end_ns(), kBegin + 60 * kSecond) << "by this node's clock";
  ASSERT_EQ(sums.failures_size(), 1);
  EXPECT_EQ(sums.failures(0).node(), "n1");
  EXPECT_EQ(sums.failures(0).rank_plus_one(), 4u);
  EXPECT_EQ(sums.ended_silently(), 1u) << "it would have reported that it ends in order";
  EXPECT_EQ(sums.watched_since_ns(), kBegin + 5 - kSecond);
  ASSERT_EQ(sums.reduced_size(), 1);
  EXPECT_EQ(sums.reduced(0).begun_ns(), kBegin + 59 * kSecond);
}

TEST(JobSums, WaysOfAllReducesOfAllNodesAreBoundedAndClean) {
  WholeJobs here, there;
  v1::Job one = Process("train", 0);
  one.add_ways()->set_way("tree");
  AddProcess(one, "n0", kBegin + kHour, &here);
  v1::Job other = Process("train", 0);
  for (int i = 0; i < kSummedWaysMax; ++i) {
    v1::AllReduceWay& way = *other.add_ways();
    way.set_way("coll\x1bnet");
    way.set_since_ns(kBegin + 10 * kSecond);
  }
  AddProcess(other, "n1", kBegin + kHour, &there);
  ASSERT_TRUE(AddNode(RunOf(there, "train"), "n1", kSecond, kBegin + kHour, &here));
  const v1::JobSums& sums = RunOf(here, "train").sums();
  ASSERT_EQ(sums.ways_size(), kSummedWaysMax);
  EXPECT_EQ(sums.ways(0).node(), "n0");
  EXPECT_EQ(sums.ways(1).node(), "n1");
  EXPECT_EQ(sums.ways(1).way(), "coll?net");
  EXPECT_EQ(sums.ways(1).since_ns(), kBegin + 9 * kSecond) << "by this node's clock";
}

}  // namespace
}  // namespace r2cc::daemon
