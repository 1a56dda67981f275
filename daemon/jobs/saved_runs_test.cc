#include "daemon/jobs/saved_runs.h"

#include <gtest/gtest.h>

#include <limits>

#include "daemon/jobs/job_registry.h"

namespace r2cc::daemon {
namespace {

constexpr int64_t kHour = 3600 * int64_t{1'000'000'000};
constexpr int64_t kBegin = 1'700'000'000 * int64_t{1'000'000'000};

v1::Job Process(const std::string& run, int64_t begun, int faults) {
  v1::Job job;
  job.set_job("train");
  job.set_uid(7);
  job.set_run(run);
  job.set_run_is_shared(!run.empty());
  job.set_attached_ns(begun);
  job.set_ended_ns(begun + kHour);
  for (int i = 0; i < faults; ++i) {
    v1::Job::Fault& fault = *job.add_faults();
    fault.set_rail("eth" + std::to_string(i));
    fault.set_nic("rail" + std::to_string(i));
    fault.set_time_ns(begun + 1000);
  }
  return job;
}

TEST(SavedRuns, ProcessesOfARunAreOneAndThoseThatMetNothingAreNone) {
  SavedRuns saved;
  saved.Add(Process("1", kBegin, 2));
  saved.Add(Process("1", kBegin + 5, 2));
  saved.Add(Process("2", kBegin, 0));
  saved.Add(Process("", kBegin, 1));
  ASSERT_EQ(saved.runs().size(), 2u);
  const v1::JobSums& sums = saved.runs().at({7, "train", "1"}).sums();
  EXPECT_EQ(sums.processes(), 2u);
  EXPECT_EQ(sums.faults_size(), 2);
}

TEST(SavedRuns, AreBounded) {
  SavedRuns saved;
  for (int run = 0; run < static_cast<int>(SavedRuns::kRunsMax) + 10; ++run)
    saved.Add(Process(std::to_string(run), kBegin + run * kHour, run == 100 ? SavedRuns::kFaultsMax + 7 : 1));
  EXPECT_EQ(saved.runs().size(), SavedRuns::kRunsMax);
  EXPECT_FALSE(saved.runs().contains({7, "train", "9"})) << "the oldest go";
  const v1::JobSums& many = saved.runs().at({7, "train", "100"}).sums();
  EXPECT_EQ(many.faults_size(), SavedRuns::kFaultsMax);
  EXPECT_EQ(many.faults_untold(), 7u);
  saved.Forget(kBegin + 200 * kHour + SavedRuns::kAgeMaxNs);
  EXPECT_FALSE(saved.runs().contains({7, "train", "100"}));
}

TEST(SavedRuns, AFaultKeepsTheOperationThatWaitedLongest) {
  SavedRuns saved;
  v1::Job process = Process("1", kBegin, 1);
  for (const int64_t held_ns : {9, 5}) {
    v1::HeldOperation& held = *process.mutable_faults(0)->add_held();
    held.set_function("AllReduce");
    held.set_number(static_cast<uint32_t>(held_ns));
    held.set_held_ns(held_ns);
  }
  saved.Add(process);
  const v1::Job::Fault& fault = saved.runs().at({7, "train", "1"}).sums().faults(0);
  ASSERT_EQ(fault.held_size(), 1);
  EXPECT_EQ(fault.held(0).held_ns(), 9);
  EXPECT_EQ(fault.held_more(), 1u);
}

TEST(SavedRuns, ComeBackFromAFileAsTheyWere) {
  SavedRuns saved;
  saved.Add(Process("1", kBegin, 2));
  // Two runs without an id that follow each other at once.
  saved.Add(Process("", kBegin, 1));
  saved.Add(Process("", kBegin + kHour + 1, 3));
  v1::KeptJobs kept;
  saved.ToKeep(&kept);
  ASSERT_EQ(kept.saved_size(), 3);
  SavedRuns restored;
  restored.Restore(kept, kBegin + 9 * kHour);
  v1::KeptJobs again;
  restored.ToKeep(&again);
  ASSERT_EQ(again.saved_size(), 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(again.saved(i).faults_size(), kept.saved(i).faults_size());
    EXPECT_EQ(again.saved(i).ended_ns(), kept.saved(i).ended_ns());
    EXPECT_EQ(again.saved(i).processes(), kept.saved(i).processes());
  }
}

TEST(SavedRuns, AFileThatLiesHarmsNobody) {
  v1::KeptJobs kept;
  for (int i = 0; i < 2 * static_cast<int>(SavedRuns::kRunsMax); ++i) {
    v1::JobSums& sums = *kept.add_saved();
    sums.set_job("\033[2J" + std::string(100'000, 'x'));
    sums.set_attached(UINT32_MAX);
    sums.set_begun_ns(std::numeric_limits<int64_t>::min());
    sums.set_ended_ns(std::numeric_limits<int64_t>::max());
    for (int f = 0; f < 300; ++f) sums.add_faults()->set_time_ns(std::numeric_limits<int64_t>::max() - f * kHour);
  }
  SavedRuns saved;
  saved.Restore(kept, kBegin);
  EXPECT_LE(saved.runs().size(), SavedRuns::kRunsMax);
  for (const auto& [key, whole] : saved.runs()) {
    EXPECT_EQ(whole.sums().attached(), 0u);
    EXPECT_LE(whole.sums().faults_size(), SavedRuns::kFaultsMax);
    EXPECT_LE(whole.sums().job().size(), 64u);
    EXPECT_EQ(whole.sums().job().find('\033'), std::string::npos);
  }
}

// More processes than are kept one by one.
TEST(SavedRuns, TheRegistryKeepsWhatFallsOutOfItsLists) {
  JobRegistry registry;
  plan::AttachRequest request{};
  request.rail_count = 1;
  const int processes = 3 * static_cast<int>(JobRegistry::kEndedPerUserMax);
  for (int i = 0; i < processes; ++i) {
    const auto id = static_cast<JobId>(i);
    request.process_id = id + 1;
    registry.Add(id, {4711 + i, 1000}, request, {"rail0"}, kBegin + i * kHour);
    plan::EvidenceRecord lost{};
    lost.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kLinkLost);
    ASSERT_TRUE(registry.Record(id, lost));
    registry.Note(id, lost, {1, kBegin + i * kHour + 5});
    registry.Remove(id, kBegin + i * kHour + 10);
  }
  EXPECT_EQ(registry.saved().runs().size() + registry.all_ended().size(), static_cast<size_t>(processes));
  const v1::KeptJobs kept = registry.ToKeep(kBegin + processes * kHour);
  JobRegistry next;
  next.Restore(kept, kBegin + processes * kHour);
  EXPECT_EQ(next.saved().runs().size(), registry.saved().runs().size());
}

}  // namespace
}  // namespace r2cc::daemon
