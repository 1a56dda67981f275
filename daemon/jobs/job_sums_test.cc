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
  const v1::ReportJobsReply::Whole& whole = jobs.at({7, "train"});
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

TEST(JobSums, AFaultOfSeveralNodesIsOneAndClocksAreSetRight) {
  WholeJobs here, there;
  v1::Job one = Process("train", kBegin + kHour);
  AddLoss(&one, "rail0", "link-down", kBegin + 60 * kSecond, 30);
  AddProcess(one, "n0", kBegin + kHour, &here);
  // Whose clock is 100 s ahead, and who saw it a little later, and one more.
  v1::Job other = Process("train", kBegin + 100 * kSecond + 2 * kHour);
  other.set_attached_ns(kBegin + 100 * kSecond - 1);
  AddLoss(&other, "rail0", "silence", kBegin + 161 * kSecond, 70);
  AddLoss(&other, "rail1", "silence", kBegin + 161 * kSecond, 5);
  v1::GaveUp* gave_up = other.add_gave_up();
  gave_up->set_time_ns(kBegin + 400 * kSecond);
  gave_up->set_lasted_ns(30 * kSecond);
  gave_up->set_text("job train gave up on n2");
  AddProcess(other, "n1", kBegin + kHour, &there);
  ASSERT_TRUE(AddNode(there.at({7, "train"}), "n1", 100 * kSecond, &here));
  const v1::ReportJobsReply::Whole& whole = here.at({7, "train"});
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

TEST(JobSums, WhatNobodyAskedForIsNotTaken) {
  WholeJobs here, there;
  AddProcess(Process("train", 0), "n0", kBegin + 1, &here);
  AddProcess(Process("another", 0), "n1", kBegin + 1, &there);
  EXPECT_FALSE(AddNode(there.begin()->second, "n1", 0, &here));
  EXPECT_EQ(here.at({7, "train"}).sums().processes(), 1u);
}

TEST(JobSums, WhatAnotherNodeSaysIsBoundedAndClean) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  WholeJobs here;
  AddProcess(Process("train", 0), "n0", kBegin + 1, &here);
  v1::ReportJobsReply::Whole told;
  v1::JobSums& sums = *told.mutable_sums();
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
  for (const int64_t ahead : {kMost, -kMost, int64_t{0}}) ASSERT_TRUE(AddNode(told, "n1", ahead, &here));
  const v1::JobSums& after = here.at({7, "train"}).sums();
  EXPECT_EQ(after.faults_size(), kSummedFaultsMax);
  EXPECT_EQ(after.faults(0).nic().find('\x1b'), std::string::npos);
  EXPECT_THAT(after.faults(0).nodes(), ElementsAre("n1"));
  int64_t stalls = 0;
  for (const v1::Job::Fault& fault : after.faults()) ASSERT_FALSE(__builtin_add_overflow(stalls, fault.stall_ns(), &stalls));
  EXPECT_EQ(after.gave_up_size(), kGaveUpLinesMax);
  EXPECT_EQ(after.gave_up_more(), 3000u - kGaveUpLinesMax);
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
      ASSERT_TRUE(AddNode(there.begin()->second, "n" + std::to_string(node), 0, &here));
  }
  const v1::JobSums& sums = here.begin()->second.sums();
  ASSERT_EQ(sums.faults_size(), 1);
  EXPECT_EQ(sums.faults(0).nodes_size(), kFaultNodesMax);
  EXPECT_EQ(sums.faults(0).nodes_more(), 20u - kFaultNodesMax);
}

}  // namespace
}  // namespace r2cc::daemon
