#include "client/jobs/job_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace r2cc::client {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kHour = 3600 * kSecond;
constexpr int64_t kBegin = 1'700'000'000 * kSecond;

// Of two processes on two nodes that ran for an hour.
v1::ReportJobsReply::Whole Job(const std::string& name) {
  v1::ReportJobsReply::Whole whole;
  v1::JobSums& sums = *whole.mutable_sums();
  sums.set_job(name);
  sums.set_processes(2);
  sums.set_begun_ns(kBegin);
  sums.set_ended_ns(kBegin + kHour);
  sums.set_running_ns(2 * kHour);
  sums.set_sent_bytes(7'200'000'000);
  sums.set_received_bytes(14);
  sums.set_replayed_bytes(2000);
  for (const char* const name_of_node : {"n0", "n1"}) {
    v1::NodeOfJob& node = *whole.add_nodes();
    node.set_node(name_of_node);
    node.set_processes(1);
    node.set_sent_bytes(3'600'000'000);
  }
  return whole;
}

void AddFault(v1::ReportJobsReply::Whole* whole, const std::string& nic, int64_t when, int64_t stall) {
  v1::Job::Fault* fault = whole->mutable_sums()->add_faults();
  fault->set_nic(nic);
  fault->set_cause("silence");
  fault->set_time_ns(when);
  fault->set_stall_ns(stall);
  fault->set_replayed_bytes(500);
  fault->add_nodes("n0");
  fault->add_nodes("n1");
}

v1::ReportJobsReply Gathered(const std::vector<v1::ReportJobsReply::Whole>& jobs) {
  v1::ReportJobsReply reply;
  reply.set_node("n0");
  for (const auto& job : jobs) *reply.add_jobs() = job;
  return reply;
}

TEST(JobReport, TheFiguresOfAWholeJob) {
  v1::ReportJobsReply::Whole whole = Job("train");
  AddFault(&whole, "rail0", kBegin + 90 * kSecond, 40'000'000);
  AddFault(&whole, "rail0", kBegin + 60 * kSecond, 30'000'000);
  AddFault(&whole, "rail1", kBegin + 60 * kSecond, 10'000'000);
  const v1::JobReports reports = MakeReports(Gathered({whole}), {.restart_ns = kHour / 6, .checkpoint_ns = kHour / 3});
  ASSERT_EQ(reports.jobs_size(), 1);
  const v1::JobReport& report = reports.jobs(0);
  EXPECT_EQ(report.node(), "n0");
  EXPECT_EQ(report.processes(), 2u);
  EXPECT_EQ(report.faults_masked(), 3u);
  EXPECT_EQ(report.faults_not_masked(), 0u);
  EXPECT_EQ(report.faults(2).time_ns(), kBegin + 90 * kSecond) << "in the order of time";
  EXPECT_THAT(report.faults(0).nodes(), ElementsAre("n0", "n1"));
  EXPECT_EQ(report.stall_ns(), 80'000'000);
  EXPECT_EQ(report.longest_stall_ns(), 40'000'000);
  EXPECT_EQ(report.nodes_size(), 2);
  // 2 MB a second, of both processes, for 80 ms, and what was sent twice.
  EXPECT_NEAR(report.goodput_lost().value(), 2e6 * 0.08 + 2000, 1);
  // 3 restarts of 10 min and 10 min done again, by two processes.
  EXPECT_NEAR(report.restart_cost().value(), 2.0, 1e-9);
  EXPECT_THAT(report.restart_cost().from(), AllOf(HasSubstr("3 restarts"), HasSubstr("by 2 processes")));
}

TEST(JobReport, WhatIsNotKnownIsSaid) {
  v1::ReportJobsReply::Whole whole = Job("train");
  AddFault(&whole, "rail0", kBegin + 60 * kSecond, 1);
  v1::JobReport report = MakeReports(Gathered({whole}), {}).jobs(0);
  EXPECT_FALSE(report.restart_cost().has_value());
  EXPECT_THAT(report.restart_cost().from(), HasSubstr("not known: say --restart"));
  whole.mutable_sums()->clear_sent_bytes();
  report = MakeReports(Gathered({whole}), {}).jobs(0);
  EXPECT_FALSE(report.goodput_lost().has_value());
  EXPECT_THAT(report.goodput_lost().from(), HasSubstr("not known"));
  report = MakeReports(Gathered({Job("calm")}), {}).jobs(0);
  EXPECT_EQ(report.goodput_lost().value(), 0);
  EXPECT_EQ(report.restart_cost().from(), "no fault was masked");
}

TEST(JobReport, WhatAJobDiedOfIsNotMasked) {
  v1::ReportJobsReply::Whole whole = Job("train");
  AddFault(&whole, "rail0", kBegin + 60 * kSecond, 1);
  AddFault(&whole, "rail0", kBegin + 600 * kSecond, 1);
  whole.mutable_sums()->set_gave_up_begun_ns(kBegin + 600 * kSecond);
  whole.mutable_sums()->add_gave_up("job train gave up on n1");
  const v1::JobReport report = MakeReports(Gathered({whole}), {}).jobs(0);
  EXPECT_EQ(report.faults_masked(), 1u);
  EXPECT_EQ(report.faults_not_masked(), 1u);
  EXPECT_TRUE(report.faults(0).masked());
}

TEST(JobReport, Text) {
  v1::ReportJobsReply::Whole whole = Job("train");
  AddFault(&whole, "rail0", kBegin + 60 * kSecond, 1'000'000);
  whole.mutable_sums()->add_gave_up("job train gave up on n2");
  v1::ReportJobsReply gathered = Gathered({whole});
  v1::ReportJobsReply::Missing& missing = *gathered.add_missing();
  missing.set_node("n2");
  missing.set_why("node n2 (h2:7460) cannot be reached: Connection refused");
  gathered.set_missing_more(3);
  gathered.set_jobs_left_out(2);
  EXPECT_THAT(FormatReports(MakeReports(gathered, {}), {}),
              AllOf(HasSubstr("job            train on n0 n1: 2 processes\n"), HasSubstr("faults         1 masked, 0 not\n"),
                    HasSubstr("gave up        job train gave up on n2\n"), HasSubstr("  n0 n1  silence "), HasSubstr("\nNODE  PROCESSES"),
                    HasSubstr("not told by    n2: node n2 (h2:7460) cannot be reached: Connection refused\n"),
                    HasSubstr("not told by    3 nodes more\n"), HasSubstr("left out       2 more jobs: name the one that is meant\n")));
  EXPECT_EQ(FormatReports({}, {}), "no job is known\n");
  whole.mutable_nodes()->DeleteSubrange(1, 1);
  EXPECT_THAT(FormatReports(MakeReports(Gathered({whole}), {}), {}), testing::Not(HasSubstr("NODE")));
}

}  // namespace
}  // namespace r2cc::client
