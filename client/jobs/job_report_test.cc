#include "client/jobs/job_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/page/ring.h"

namespace r2cc::client {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kHour = 3600 * kSecond;
constexpr int64_t kBegin = 1'700'000'000 * kSecond;

// The report of two processes on two nodes that ran for an hour.
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

TEST(JobReport, TheOperationsThatWaitedAreATable) {
  v1::ReportJobsReply::Whole whole = Job("train");
  AddFault(&whole, "rail0", kBegin + 90 * kSecond, 40'000'000);
  const Style style{.zone = absl::UTCTimeZone()};
  EXPECT_THAT(FormatReports(MakeReports(Gathered({whole}), {}), style), testing::Not(HasSubstr("OPERATION"))) << "no profiler";
  v1::Job::Fault& fault = *whole.mutable_sums()->mutable_faults(0);
  v1::HeldOperation& held = *fault.add_held();
  held.set_function("AllReduce");
  held.set_number(4711);
  held.set_communicator(0xff);
  held.set_communicator_name("tp0\x1b");
  held.set_rank(3);
  held.set_ranks(8);
  held.set_held_ns(280'000'000);
  held.set_node("n1");
  v1::HeldOperation& bare = *fault.add_held();
  bare.set_function("Send to 3");
  bare.set_communicator(0xff);
  fault.set_held_more(4);
  const v1::JobReports reports = MakeReports(Gathered({whole}), {});
  EXPECT_EQ(reports.jobs(0).faults(0).held_size(), 2);
  EXPECT_EQ(reports.jobs(0).faults(0).held_more(), 4u);
  const std::string text = FormatReports(reports, style);
  EXPECT_THAT(text, testing::ContainsRegex("OPERATION +COMMUNICATOR +RANK +ON +NIC +LOST +WAITED"));
  EXPECT_THAT(text, testing::ContainsRegex("AllReduce 4711 +tp0. +3 of 8 +n1 +rail0 +2023-11-14 22:14:50 +280"));
  EXPECT_THAT(text, testing::Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, testing::ContainsRegex("Send to 3 +ff +0 "));
  EXPECT_THAT(text, HasSubstr("and 4 more"));
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
  EXPECT_EQ(report.stall_ns(), 80'000'000) << "of plugins of 0.2.0, which do not report when";
  EXPECT_EQ(report.longest_stall_ns(), 40'000'000);
  EXPECT_EQ(report.nodes_size(), 2);
  // 2 MB a second, of both processes, for 80 ms, and what was sent twice.
  EXPECT_NEAR(report.goodput_lost().value(), 2e6 * 0.08 + 2000, 1);
  // All three within the first restart of 10 min, with 10 min done again by two processes.
  EXPECT_EQ(report.restarts_saved(), 1u);
  EXPECT_NEAR(report.restart_cost().value(), 2.0 / 3, 1e-9);
  EXPECT_THAT(report.restart_cost().from(), AllOf(HasSubstr("1 restart of 10 min"), HasSubstr("by 2 processes")));
  EXPECT_FALSE(report.faults(0).same_restart());
  EXPECT_TRUE(report.faults(1).same_restart());
}

TEST(JobReport, AFaultThatOneRestartWouldHaveCoveredCostsNoneOfItsOwn) {
  // 10 min to restart and 10 min done again.
  const RestartCost cost{.restart_ns = kHour / 6, .checkpoint_ns = kHour / 3};
  v1::ReportJobsReply::Whole whole = Job("train");
  for (int flap = 0; flap < 8; ++flap) AddFault(&whole, "rail0", kBegin + (60 + 3 * flap) * kSecond / 2, 1);
  EXPECT_EQ(MakeReports(Gathered({whole}), cost).jobs(0).restarts_saved(), 1u) << "8 flaps in 12 s";
  const int64_t first = kBegin + 30 * kSecond;
  AddFault(&whole, "rail0", first + kHour / 3, 1);
  EXPECT_EQ(MakeReports(Gathered({whole}), cost).jobs(0).restarts_saved(), 1u);
  AddFault(&whole, "rail0", first + kHour / 3 + 1, 1);
  EXPECT_EQ(MakeReports(Gathered({whole}), cost).jobs(0).restarts_saved(), 2u);
  const v1::JobReport assumed = MakeReports(Gathered({whole}), {}).jobs(0);
  EXPECT_EQ(assumed.restarts_saved(), 1u) << "15 min and an hour between checkpoints are assumed";
  EXPECT_THAT(assumed.restart_cost().from(), HasSubstr("15 min"));
  EXPECT_THAT(assumed.restart_cost().from(), HasSubstr("assumed: set --restart and --checkpoint"));
}

TEST(JobReport, StallsOfRailsThatWereLostTogetherAreOne) {
  v1::ReportJobsReply::Whole whole = Job("train");
  AddFault(&whole, "rail0", kBegin + 60 * kSecond, 300);
  AddFault(&whole, "rail1", kBegin + 60 * kSecond, 200);
  AddFault(&whole, "rail1", kBegin + 90 * kSecond, 50);
  auto* const faults = whole.mutable_sums()->mutable_faults();
  faults->Mutable(0)->set_stall_end_ns(kBegin + 60 * kSecond + 300);
  faults->Mutable(1)->set_stall_end_ns(kBegin + 60 * kSecond + 310);
  faults->Mutable(2)->set_stall_end_ns(kBegin + 90 * kSecond);
  const v1::JobReport report = MakeReports(Gathered({whole}), {}).jobs(0);
  EXPECT_EQ(report.stall_ns(), 310 + 50);
  EXPECT_EQ(report.longest_stall_ns(), 300);
}

TEST(JobReport, AFaultIsMaskedWhenTheJobWentOn) {
  v1::ReportJobsReply::Whole whole = Job("train");
  v1::JobSums& sums = *whole.mutable_sums();
  AddFault(&whole, "rail0", kBegin + 60 * kSecond, 1);
  AddFault(&whole, "rail1", kBegin + 600 * kSecond, 0);
  sums.mutable_faults(1)->set_open_links(2);
  sums.set_attached(2);
  v1::JobReport report = MakeReports(Gathered({whole}), {}).jobs(0);
  EXPECT_EQ(report.faults_masked(), 1u);
  EXPECT_EQ(report.faults_open(), 1u) << "it may still go on";
  EXPECT_EQ(report.faults_not_masked(), 0u);
  EXPECT_EQ(report.died_size(), 0);
  // It ends in order: it had made all the progress that it wanted.
  sums.set_attached(0);
  EXPECT_EQ(MakeReports(Gathered({whole}), {}).jobs(0).faults_masked(), 2u);
  // One of its processes was killed.
  sums.set_ended_silently(1);
  report = MakeReports(Gathered({whole}), {}).jobs(0);
  EXPECT_EQ(report.faults_not_masked(), 1u);
  ASSERT_EQ(report.died_size(), 1);
  EXPECT_EQ(report.died(0), "it ended without progress after n0 n1 lost rail1: the other end does not answer on it");
  EXPECT_EQ(report.died_ns(), kBegin + 600 * kSecond);
}

TEST(JobReport, AJobThatDiedShowsItsCause) {
  v1::ReportJobsReply::Whole whole = Job("train");
  v1::JobSums& sums = *whole.mutable_sums();
  const auto fail = [&](const std::string& node, const std::string& peer, plan::Failure failure, int64_t when) {
    v1::JobFailure& one = *sums.add_failures();
    one.set_node(node);
    one.set_peer_node(peer);
    one.set_failure(static_cast<uint32_t>(failure));
    one.set_time_ns(when);
  };
  fail("n3", "n2", plan::Failure::kPeerClosed, kBegin + 60 * kSecond);
  fail("n2", "n1", plan::Failure::kPeerGone, kBegin + 60 * kSecond + 5);
  sums.mutable_failures(1)->set_rank_plus_one(3);
  const v1::JobReport report = MakeReports(Gathered({whole}), {}).jobs(0);
  ASSERT_EQ(report.died_size(), 2);
  EXPECT_EQ(report.died(0), "n2 (rank 2) lost n1: rank lost: its process is gone") << "what follows from it comes behind";
  EXPECT_EQ(report.died(1), "n3 lost n2: it closed the connection while messages were on their way");
  EXPECT_EQ(report.died_ns(), kBegin + 60 * kSecond);
}

TEST(JobReport, TheWayOfAllReduces) {
  v1::ReportJobsReply::Whole whole = Job("train");
  v1::AllReduceWay& way = *whole.mutable_sums()->add_ways();
  way.set_node("n0");
  way.set_communicator(3);
  way.set_way("collnet");
  way.set_call(51200);
  way.set_bytes_min(64 << 20);
  way.set_expected_permille(880);
  way.set_changes(3);
  const std::string text = FormatReports(MakeReports(Gathered({whole}), {}), {});
  EXPECT_NE(text.find("all_reduce     n0, communicator 3: CollNet from 64 MiB on, expected 0.88 of the usual time, since "), text.npos)
      << text;
  EXPECT_NE(text.find(" (call 51200), change 3\n"), text.npos) << text;
}

TEST(JobReport, TimeWithFewerRails) {
  v1::ReportJobsReply::Whole whole = Job("train");
  v1::JobSums& sums = *whole.mutable_sums();
  const auto reduce = [&](int64_t begun, int64_t ended, uint32_t usable) {
    v1::ReducedRails& one = *sums.add_reduced();
    one.set_begun_ns(kBegin + begun);
    one.set_ended_ns(kBegin + ended);
    one.set_usable(usable);
    one.set_rails(4);
  };
  reduce(kHour / 4, kHour / 2, 3);
  reduce(kHour / 2, kHour * 5 / 8, 2);
  reduce(kHour * 3 / 4, kHour, 3);
  const v1::JobReports reports = MakeReports(Gathered({whole}), {});
  // 7.2 GB an hour; a quarter of them missed for half an hour, half of them for an eighth.
  EXPECT_NEAR(reports.jobs(0).goodput_lost().value(), 7.2e9 * (0.5 / 4 + 0.125 / 2) + 2000, 1e3);
  EXPECT_THAT(FormatReports(reports, {}),
              AllOf(HasSubstr("fewer rails    30 min 0 s of 1 h 0 min with 3 of 4 rails\n"), HasSubstr("with 2 of 4 rails\n")));
}

TEST(JobReport, UnwatchedTimeAndTheRun) {
  v1::ReportJobsReply::Whole whole = Job("train");
  whole.mutable_sums()->set_run("123.0");
  whole.mutable_sums()->set_watched_since_ns(kBegin + 60 * kSecond);
  whole.mutable_sums()->set_ends_not_seen(1);
  EXPECT_THAT(FormatReports(MakeReports(Gathered({whole}), {}), {}),
              AllOf(HasSubstr("train, run 123.0, on n0 n1: 2 processes"),
                    HasSubstr("watched since  2023-11-14 22:14:20: what happened before is missing\n"),
                    HasSubstr("ended          1 while r2ccd did not run")));
}

TEST(JobReport, UnknownValuesAreNamed) {
  v1::ReportJobsReply::Whole whole = Job("train");
  AddFault(&whole, "rail0", kBegin + 60 * kSecond, 1);
  v1::JobReport report = MakeReports(Gathered({whole}), {}).jobs(0);
  whole.mutable_sums()->clear_sent_bytes();
  report = MakeReports(Gathered({whole}), {}).jobs(0);
  EXPECT_FALSE(report.goodput_lost().has_value());
  EXPECT_THAT(report.goodput_lost().from(), HasSubstr("not known"));
  report = MakeReports(Gathered({Job("calm")}), {}).jobs(0);
  EXPECT_EQ(report.goodput_lost().value(), 0);
  EXPECT_EQ(report.restart_cost().from(), "no fault was masked");
}

TEST(JobReport, AFaultThatEndedAJobIsNotMasked) {
  v1::ReportJobsReply::Whole whole = Job("train");
  AddFault(&whole, "rail0", kBegin + 60 * kSecond, 1);
  AddFault(&whole, "rail0", kBegin + 600 * kSecond, 1);
  whole.mutable_sums()->set_gave_up_begun_ns(kBegin + 600 * kSecond);
  whole.mutable_sums()->add_gave_up("job train gave up on n1");
  const v1::JobReport report = MakeReports(Gathered({whole}), {}).jobs(0);
  EXPECT_EQ(report.faults_masked(), 1u);
  EXPECT_EQ(report.faults_not_masked(), 1u);
  EXPECT_TRUE(report.faults(0).masked());
  EXPECT_EQ(report.restarts_saved(), 0u) << "the restart that followed would have covered both";
  const v1::JobReport quick = MakeReports(Gathered({whole}), {.restart_ns = 60 * kSecond, .checkpoint_ns = 60 * kSecond}).jobs(0);
  EXPECT_EQ(quick.restarts_saved(), 1u);
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
  EXPECT_THAT(
      FormatReports(MakeReports(gathered, {}), {}),
      AllOf(HasSubstr("job            train on n0 n1: 2 processes\n"), HasSubstr("faults         1 masked, 0 not\n"),
            HasSubstr("died           job train gave up on n2\n"), HasSubstr("  n0 n1  the other end does not answer on it "),
            HasSubstr("\nNODE  PROCESSES"), HasSubstr("no answer      n2: node n2 (h2:7460) cannot be reached: Connection refused\n"),
            HasSubstr("no answer      3 nodes more\n"), HasSubstr("left out       2 more jobs: name the one that is meant\n")));
  EXPECT_EQ(FormatReports({}, {}), "no job is known\n");
  whole.mutable_nodes()->DeleteSubrange(1, 1);
  EXPECT_THAT(FormatReports(MakeReports(Gathered({whole}), {}), {}), testing::Not(HasSubstr("NODE")));
}

}  // namespace
}  // namespace r2cc::client
