// The savings, from the sums of runs, and as text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/jobs/job_report.h"
#include "proto/job_account.h"

namespace r2cc::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kHour = 3600 * kSecond;
constexpr int64_t kBegin = 1'700'000'000 * kSecond;
constexpr RestartCost kHalfHour{kHour / 6, 2 * kHour / 3};  // 10 min, and half of 40 min

v1::JobSums RunOf(uint32_t processes, int64_t begun, int64_t ended) {
  v1::JobSums sums;
  sums.set_processes(processes);
  sums.set_begun_ns(begun);
  sums.set_ended_ns(ended);
  return sums;
}

void AddFault(v1::JobSums* sums, int64_t when) {
  v1::Job::Fault& fault = *sums->add_faults();
  fault.set_nic("rail0");
  fault.set_time_ns(when);
}

v1::Saved SavedOf(const std::vector<const v1::JobSums*>& runs, int64_t since, int64_t now, const RestartCost& low = kHalfHour,
                  const RestartCost& high = kHalfHour) {
  return SavedBy(runs, since, now, low, high);
}

TEST(Saved, SumsUpTheReportsOfTheRuns) {
  v1::JobSums one = RunOf(8, kBegin, kBegin + 4 * kHour), other = RunOf(2, kBegin, kBegin + 2 * kHour);
  AddFault(&one, kBegin + kHour);
  AddFault(&one, kBegin + kHour + kHour / 4);  // within the restart that the first would have cost
  AddFault(&one, kBegin + 3 * kHour);
  AddFault(&other, kBegin + kHour);
  v1::ReducedRails& reduced = *one.add_reduced();
  reduced.set_begun_ns(kBegin + kHour);
  reduced.set_ended_ns(kBegin + 2 * kHour);
  reduced.set_usable(1);
  reduced.set_rails(2);
  const v1::Saved saved = SavedOf({&one, &other}, kBegin, kBegin + 5 * kHour);
  EXPECT_EQ(saved.jobs(), 2u);
  EXPECT_EQ(saved.faults_masked(), 4u);
  EXPECT_EQ(saved.restarts(), 3u);
  EXPECT_DOUBLE_EQ(saved.gpu_hours_low(), 2 * 0.5 * 8 + 1 * 0.5 * 2);
  EXPECT_DOUBLE_EQ(saved.gpu_hours_high(), saved.gpu_hours_low());
  EXPECT_EQ(saved.alive_ns(), 3 * kHour + kHour);
  EXPECT_EQ(saved.reduced_ns(), kHour);
  EXPECT_EQ(saved.died_size(), 0);

  v1::ReportJobsReply gathered;
  *gathered.add_jobs()->mutable_sums() = one;
  *gathered.add_jobs()->mutable_sums() = other;
  double hours = 0;
  uint32_t restarts = 0;
  const v1::JobReports reports = MakeReports(gathered, kHalfHour);
  for (const v1::JobReport& report : reports.jobs()) {
    hours += report.restart_cost().value();
    restarts += report.restarts_saved();
  }
  EXPECT_DOUBLE_EQ(hours, saved.gpu_hours_high());
  EXPECT_EQ(restarts, saved.restarts());
}

TEST(Saved, OnlyWhatLiesInTheTimeCounts) {
  v1::JobSums run = RunOf(1, kBegin, kBegin + 100 * kHour);
  AddFault(&run, kBegin + kHour);
  AddFault(&run, kBegin + 80 * kHour);
  v1::ReducedRails& reduced = *run.add_reduced();
  reduced.set_begun_ns(kBegin + 79 * kHour);
  reduced.set_ended_ns(kBegin + 81 * kHour);
  v1::JobSums before = RunOf(1, kBegin, kBegin + 2 * kHour);
  AddFault(&before, kBegin + kHour);
  const v1::Saved saved = SavedOf({&run, &before}, kBegin + 80 * kHour, kBegin + 100 * kHour);
  EXPECT_EQ(saved.jobs(), 1u);
  EXPECT_EQ(saved.faults_masked(), 1u);
  EXPECT_EQ(saved.restarts(), 1u);
  EXPECT_EQ(saved.alive_ns(), 20 * kHour);
  EXPECT_EQ(saved.reduced_ns(), kHour);
}

TEST(Saved, ARunThatGoesOnIsAliveUntilNow) {
  v1::JobSums run = RunOf(1, kBegin, kBegin);
  run.set_attached(1);
  AddFault(&run, kBegin + kHour);
  EXPECT_EQ(SavedOf({&run}, kBegin, kBegin + 3 * kHour).alive_ns(), 2 * kHour);
  // Without progress past the fault it is neither masked nor lost.
  run.mutable_faults(0)->set_open_links(1);
  const v1::Saved saved = SavedOf({&run}, kBegin, kBegin + 3 * kHour);
  EXPECT_EQ(saved.faults_masked() + saved.faults_not_masked(), 0u);
}

TEST(Saved, FaultsOnPurposeCountApart) {
  v1::JobSums run = RunOf(8, kBegin, kBegin + 4 * kHour), died = RunOf(1, kBegin, kBegin + kHour);
  AddFault(&run, kBegin + kHour);
  run.mutable_faults(0)->set_on_purpose(true);
  AddFault(&died, kBegin + kHour - kSecond);
  died.mutable_faults(0)->set_on_purpose(true);
  died.mutable_faults(0)->set_open_links(1);
  died.set_ended_silently(1);
  v1::ReportJobsReply answer;
  v1::Saved& saved = *answer.mutable_saved();
  saved = SavedOf({&run, &died}, kBegin, kBegin + 5 * kHour);
  EXPECT_EQ(saved.faults_masked() + saved.faults_not_masked() + saved.restarts() + saved.jobs(), 0u);
  EXPECT_EQ(saved.gpu_hours_high(), 0);
  EXPECT_EQ(saved.alive_ns(), 0);
  EXPECT_EQ(saved.on_purpose(), 2u);
  ASSERT_EQ(saved.died_size(), 1) << "a drill may end a job";
  EXPECT_EQ(saved.died(0).cause(), "no-rail");
  EXPECT_THAT(FormatSaved(answer, {}, /*only_here=*/false, {}),
              HasSubstr("0 masked, 0 not; 2 on purpose (fail-nic, drain --now, R2CC_FAIL_RAILS), not counted"));

  v1::ReportJobsReply gathered;
  *gathered.add_jobs()->mutable_sums() = run;
  *gathered.add_jobs()->mutable_sums() = died;
  const v1::JobReports reports = MakeReports(gathered, kHalfHour);
  for (const v1::JobReport& report : reports.jobs()) {
    EXPECT_EQ(report.faults_masked() + report.faults_not_masked() + report.restarts_saved(), 0u);
    EXPECT_EQ(report.on_purpose(), 1u);
  }
  EXPECT_THAT(FormatReports(reports, {}), AllOf(HasSubstr("0 masked, 0 not; 1 on purpose"), HasSubstr("on purpose, not masked")));
}

TEST(Saved, JobsThatDiedAreNamedByCause) {
  v1::JobSums given_up = RunOf(1, kBegin, kBegin + kHour), lost = RunOf(1, kBegin, kBegin + kHour),
              stuck = RunOf(1, kBegin, kBegin + kHour), broken = RunOf(1, kBegin, kBegin + kHour);
  AddFault(&given_up, kBegin + kHour - kSecond);
  given_up.add_gave_up("no rail reached n1");
  given_up.set_gave_up_begun_ns(kBegin + kHour);
  v1::JobFailure& gone = *lost.add_failures();
  gone.set_failure(1);
  gone.set_time_ns(kBegin + kHour);
  AddFault(&stuck, kBegin + kHour - kSecond);
  stuck.mutable_faults(0)->set_open_links(1);
  stuck.set_ended_silently(1);
  v1::JobFailure& buffer = *broken.add_failures();
  buffer.set_failure(4);
  buffer.set_time_ns(kBegin + kHour);
  const v1::Saved saved = SavedOf({&given_up, &lost, &stuck, &broken}, kBegin, kBegin + 2 * kHour);
  EXPECT_EQ(saved.faults_not_masked(), 2u);
  EXPECT_EQ(saved.restarts(), 0u);
  ASSERT_EQ(saved.died_size(), 3);
  EXPECT_EQ(saved.died(0).cause(), "no-rail");
  EXPECT_EQ(saved.died(0).jobs(), 2u);
  EXPECT_EQ(saved.died(1).cause(), "rank-lost");
  EXPECT_EQ(saved.died(2).cause(), "other");
}

TEST(Saved, TheTextStatesWhatIsAssumed) {
  v1::JobSums run = RunOf(8, kBegin, kBegin + 4 * kHour);
  AddFault(&run, kBegin + kHour);
  v1::ReportJobsReply answer;
  answer.set_node("n0");
  *answer.mutable_saved() = SavedOf({&run}, kBegin, kBegin + 5 * kHour, kRestartCostLow, kRestartCostHigh);
  v1::ReportJobsReply::Missing& missing = *answer.add_missing();
  missing.set_node("n7\033[2J");
  missing.set_why("it has not answered");
  const std::string text = FormatSaved(answer, {}, /*only_here=*/false, {});
  EXPECT_THAT(text, AllOf(HasSubstr("1 masked, 0 not"), HasSubstr("1 avoided, in 1 job\n"), HasSubstr("all nodes"),
                          HasSubstr("1.3 to 6.0 saved (assumed: a restart of 5 min"),
                          HasSubstr("a process is a GPU; set --restart and --checkpoint"), HasSubstr("180 minutes of jobs after a fault"),
                          HasSubstr("n7 [2J: it has not answered")));
  const std::string stated = FormatSaved(answer, kHalfHour, /*only_here=*/true, {});
  EXPECT_THAT(stated, AllOf(HasSubstr("node n0"), HasSubstr("6.0 saved (a restart of 10 min"), Not(HasSubstr("assumed"))));
}

}  // namespace
}  // namespace r2cc::client
