#include "client/jobs/job_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace r2cc::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kHour = 3600 * kSecond;
constexpr int64_t kBegin = 1'700'000'000 * kSecond;

v1::Job Process(const std::string& name, int64_t ended) {
  v1::Job job;
  job.set_job(name);
  job.set_attached_ns(kBegin);
  job.set_ended_ns(ended);
  v1::RailTotals* rail = job.add_rails();
  rail->set_rail("eth1");
  rail->set_nic("rail0");
  rail->set_sent_bytes(3'600'000'000);
  rail->set_received_bytes(7);
  rail->set_replayed_bytes(1000);
  return job;
}

void AddFault(v1::Job* job, const std::string& nic, const std::string& cause, int64_t when, int64_t stall) {
  v1::Job::Fault* fault = job->add_faults();
  fault->set_nic(nic);
  fault->set_cause(cause);
  fault->set_time_ns(when);
  fault->set_stall_ns(stall);
  fault->set_replayed_bytes(500);
}

TEST(JobReport, FaultsOfTheProcessesAreOne) {
  v1::Job one = Process("train", kBegin + kHour);
  v1::Job other = Process("train", kBegin + kHour);
  AddFault(&one, "rail0", "silence", kBegin + 60 * kSecond + 5, 20'000'000);
  AddFault(&other, "rail0", "link-down", kBegin + 60 * kSecond, 30'000'000);
  AddFault(&other, "rail1", "link-down", kBegin + 60 * kSecond, 10'000'000);
  AddFault(&other, "rail0", "link-down", kBegin + 90 * kSecond, 40'000'000);
  const v1::JobReports reports = MakeReports({one, other}, "n0", {.restart_ns = kHour / 6, .checkpoint_ns = kHour / 3}, kBegin + 2 * kHour);
  ASSERT_EQ(reports.jobs_size(), 1);
  const v1::JobReport& report = reports.jobs(0);
  EXPECT_EQ(report.processes(), 2u);
  EXPECT_EQ(report.attached(), 0u);
  EXPECT_EQ(report.faults_masked(), 3u);
  EXPECT_EQ(report.faults_not_masked(), 0u);
  EXPECT_EQ(report.faults(0).cause(), "link-down") << "the first sign";
  EXPECT_EQ(report.stall_ns(), 80'000'000);
  EXPECT_EQ(report.longest_stall_ns(), 40'000'000);
  EXPECT_EQ(report.replayed_bytes(), 2000u);
  // 2 MB a second, of both processes, for 80 ms, and what was sent twice.
  EXPECT_NEAR(report.goodput_lost().value(), 2e6 * 0.08 + 2000, 1);
  // 3 restarts of 10 min and 10 min done again, by two processes.
  EXPECT_NEAR(report.restart_cost().value(), 2.0, 1e-9);
  EXPECT_THAT(report.restart_cost().from(), HasSubstr("3 restarts"));
}

TEST(JobReport, WhatIsNotKnownIsSaid) {
  v1::Job job = Process("train", 0);
  AddFault(&job, "rail0", "silence", kBegin + 60 * kSecond, 1);
  v1::JobReport report = MakeReports({job}, "n0", {}, kBegin + kHour).jobs(0);
  EXPECT_EQ(report.attached(), 1u);
  EXPECT_FALSE(report.restart_cost().has_value());
  EXPECT_THAT(report.restart_cost().from(), HasSubstr("not known: say --restart"));
  job.clear_rails();
  report = MakeReports({job}, "n0", {}, kBegin + kHour).jobs(0);
  EXPECT_FALSE(report.goodput_lost().has_value());
  EXPECT_THAT(report.goodput_lost().from(), HasSubstr("not known"));
  report = MakeReports({Process("calm", kBegin + 1)}, "n0", {}, kBegin + kHour).jobs(0);
  EXPECT_EQ(report.goodput_lost().value(), 0);
  EXPECT_EQ(report.restart_cost().from(), "no fault was masked");
}

TEST(JobReport, WhatAJobDiedOfIsNotMasked) {
  v1::Job job = Process("train", kBegin + kHour);
  AddFault(&job, "rail0", "silence", kBegin + 60 * kSecond, 1);
  AddFault(&job, "rail0", "silence", kBegin + 600 * kSecond, 1);
  v1::GaveUp* gave_up = job.add_gave_up();
  gave_up->set_time_ns(kBegin + 630 * kSecond);
  gave_up->set_lasted_ns(30 * kSecond);
  gave_up->set_text("job train gave up on n1");
  const v1::JobReports reports = MakeReports({job, Process("other", kBegin + 1)}, "n0", {}, kBegin + kHour);
  ASSERT_EQ(reports.jobs_size(), 2);
  const v1::JobReport& report = reports.jobs(0).job() == "train" ? reports.jobs(0) : reports.jobs(1);
  EXPECT_EQ(report.faults_masked(), 1u);
  EXPECT_EQ(report.faults_not_masked(), 1u);
  EXPECT_THAT(FormatReports(reports, {}),
              AllOf(HasSubstr("faults         1 masked, 1 not\n"), HasSubstr("gave up        job train gave up on n1\n"),
                    HasSubstr("not known: say --restart"), HasSubstr("job            other on n0: 1 process\n")));
  EXPECT_EQ(FormatReports({}, {}), "no job is known\n");
}

}  // namespace
}  // namespace r2cc::client
