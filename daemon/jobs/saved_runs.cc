#include "daemon/jobs/saved_runs.h"

#include <algorithm>
#include <utility>

namespace r2cc::daemon {
namespace {

bool MetSomething(const v1::Job& process) {
  return process.faults_size() > 0 || process.failures_size() > 0 || process.gave_up_size() > 0 || process.reduced_size() > 0;
}

template <typename List>
int Cut(List* list, int most) {
  const int beyond = std::max(list->size() - most, 0);
  list->DeleteSubrange(0, beyond);  // the oldest
  return beyond;
}

// The shortest are beyond.
void CutHeld(v1::Job::Fault* fault) {
  const int beyond = fault->held_size() - SavedRuns::kHeldMax;
  if (beyond <= 0) return;
  fault->mutable_held()->DeleteSubrange(SavedRuns::kHeldMax, beyond);
  fault->set_held_more(fault->held_more() + static_cast<uint32_t>(beyond));
}

}  // namespace

void SavedRuns::Add(const v1::Job& process) {
  if (!MetSomething(process)) return;
  AddProcess(process, /*node=*/"", process.ended_ns(), &runs_);
  Bound();
}

void SavedRuns::Forget(int64_t now_ns) {
  std::erase_if(runs_, [&](const auto& run) { return now_ns - run.second.sums().ended_ns() > kAgeMaxNs; });
}

void SavedRuns::Bound() {
  for (auto& [key, whole] : runs_) {
    v1::JobSums& sums = *whole.mutable_sums();
    whole.clear_peer_nodes();
    for (v1::Job::Fault& fault : *sums.mutable_faults()) CutHeld(&fault);
    sums.set_faults_untold(sums.faults_untold() + static_cast<uint32_t>(Cut(sums.mutable_faults(), kFaultsMax)));
    sums.set_gave_up_more(sums.gave_up_more() + static_cast<uint32_t>(Cut(sums.mutable_gave_up(), kLinesMax)));
  }
  while (runs_.size() > kRunsMax)
    runs_.erase(std::min_element(runs_.begin(), runs_.end(),
                                 [](const auto& a, const auto& b) { return a.second.sums().ended_ns() < b.second.sums().ended_ns(); }));
}

void SavedRuns::ToKeep(v1::KeptJobs* kept) const {
  for (const auto& [key, whole] : runs_) *kept->add_saved() = whole.sums();
}

void SavedRuns::Restore(const v1::KeptJobs& kept, int64_t now_ns) {
  for (int i = 0; i < std::min(kept.saved_size(), static_cast<int>(kRunsMax)); ++i) {
    v1::ReportJobsReply::Whole reported;
    *reported.mutable_sums() = kept.saved(i);
    reported.mutable_sums()->set_attached(0);
    // Two runs that followed each other at once stay two.
    WholeJobs one;
    AddOrBegin(reported, /*node=*/"", /*clock_ahead_ns=*/0, now_ns, &one);
    for (auto& [key, whole] : one) {
      const auto& [uid, job, run] = key;
      runs_[{uid, job, whole.sums().run_is_shared() ? run : run + "/" + std::to_string(i)}] = std::move(whole);
    }
  }
  Forget(now_ns);
  Bound();
}

}  // namespace r2cc::daemon
