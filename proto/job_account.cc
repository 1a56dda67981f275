#include "proto/job_account.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace r2cc {
namespace {

// What began so shortly before a peer was given up is what the job died of.
constexpr int64_t kSameFaultNs = 2'000'000'000;
constexpr double kNanosPerHour = 3600e9;
// plan::Failure
constexpr uint32_t kUnknown = 0, kPeerGone = 1, kPeerClosed = 2, kDeadline = 3;

// A peer that closes early follows from something else, mostly.
bool IsConsequence(const v1::JobFailure& failure) { return failure.failure() == kPeerClosed || failure.failure() == kUnknown; }

void JudgeFaults(const v1::JobSums& sums, JobAccount* account) {
  for (const v1::Job::Fault& fault : sums.faults()) account->faults.push_back({&fault});
  std::sort(account->faults.begin(), account->faults.end(),
            [](const JobAccount::Fault& a, const JobAccount::Fault& b) { return a.fault->time_ns() < b.fault->time_ns(); });
  // Processes that ended in order, without a failure, had made all the progress that they wanted.
  const bool ended_well = sums.attached() == 0 && sums.failures().empty() && sums.ended_silently() == 0 && sums.ends_not_seen() == 0;
  for (JobAccount::Fault& judged : account->faults) {
    const bool died_of_it = sums.has_gave_up_begun_ns() && judged.fault->time_ns() + kSameFaultNs >= sums.gave_up_begun_ns();
    const bool passed = judged.fault->open_links() == 0 || ended_well;
    judged.masked = !died_of_it && passed;
    judged.open = !died_of_it && !passed && sums.attached() > 0;
    ++(judged.fault->on_purpose() ? account->on_purpose
       : judged.masked            ? account->masked
       : judged.open              ? account->open
                                  : account->not_masked);
  }
}

void JudgeDeath(const v1::JobSums& sums, JobAccount* account) {
  if (sums.has_gave_up_begun_ns()) account->died_ns = sums.gave_up_begun_ns();
  if (sums.gave_up_size() > 0) account->death = Death::kNoRail;
  for (const v1::JobFailure* const failure : FailuresByCause(sums)) {
    // The line of the process that gave up has more details.
    if (failure->failure() == kDeadline && sums.gave_up_size() > 0) continue;
    if (account->death == Death::kNone)
      account->death = failure->failure() == kDeadline   ? Death::kNoRail
                       : failure->failure() == kPeerGone ? Death::kRankLost
                                                         : Death::kOther;
    if (account->died_ns == 0 || failure->time_ns() < account->died_ns) account->died_ns = failure->time_ns();
  }
  if (account->death != Death::kNone || sums.attached() > 0) return;
  // No process reports a cause, and it ended without progress past a fault.
  for (const JobAccount::Fault& judged : account->faults) {
    if (judged.masked) continue;
    account->death = Death::kNoRail;
    if (account->died_ns == 0) account->died_ns = judged.fault->time_ns();
  }
}

// The job would have been down, or would have had to do the same steps again, after a fault: a fault within that time costs no restart of
// its own.
void CountRestarts(const RestartCost& cost, JobAccount* account) {
  int64_t covered_until = 0;
  for (JobAccount::Fault& judged : account->faults) {
    // The restart that followed the job's death would have covered it, too.
    const bool near_death = account->died_ns != 0 && judged.fault->time_ns() + cost.each_ns() >= account->died_ns;
    if (!judged.masked || judged.fault->on_purpose() || near_death) continue;
    if (account->restarts > 0 && judged.fault->time_ns() <= covered_until) {
      judged.same_restart = true;
      continue;
    }
    judged.restart = true;
    ++account->restarts;
    covered_until = judged.fault->time_ns() + cost.each_ns();
  }
}

// Restarts of faults from `since_ns` on, and when the first of them was; 0: there was none.
uint32_t RestartsSince(const JobAccount& account, int64_t since_ns, int64_t* first_ns) {
  uint32_t restarts = 0;
  *first_ns = 0;
  for (const JobAccount::Fault& judged : account.faults) {
    if (!judged.restart || judged.fault->time_ns() < since_ns) continue;
    if (restarts++ == 0) *first_ns = judged.fault->time_ns();
  }
  return restarts;
}

int64_t ReducedSince(const v1::JobSums& sums, int64_t since_ns, int64_t until_ns) {
  int64_t reduced_ns = 0;
  for (const v1::ReducedRails& one : sums.reduced()) {
    const int64_t ended_ns = std::min(one.ended_ns() == 0 ? until_ns : one.ended_ns(), until_ns);
    reduced_ns += std::max<int64_t>(ended_ns - std::max(one.begun_ns(), since_ns), 0);
  }
  return reduced_ns;
}

}  // namespace

const char* DeathName(Death death) {
  switch (death) {
    case Death::kNone: return "";
    case Death::kNoRail: return "no-rail";
    case Death::kRankLost: return "rank-lost";
    case Death::kOther: return "other";
  }
  return "";
}

const char* DeathText(Death death) {
  switch (death) {
    case Death::kNone: return "";
    case Death::kNoRail: return "no rail reached a peer";
    case Death::kRankLost: return "a rank was lost: not the network";
    case Death::kOther: return "an operation failed for another reason: not the network";
  }
  return "";
}

std::vector<const v1::JobFailure*> FailuresByCause(const v1::JobSums& sums) {
  std::vector<const v1::JobFailure*> failures;
  for (const v1::JobFailure& failure : sums.failures()) failures.push_back(&failure);
  std::stable_sort(failures.begin(), failures.end(), [](const auto* a, const auto* b) {
    return std::pair(IsConsequence(*a), a->time_ns()) < std::pair(IsConsequence(*b), b->time_ns());
  });
  return failures;
}

JobAccount AccountOf(const v1::JobSums& sums, const RestartCost& cost) {
  JobAccount account;
  JudgeFaults(sums, &account);
  JudgeDeath(sums, &account);
  CountRestarts(cost, &account);
  return account;
}

v1::Saved SavedBy(const std::vector<const v1::JobSums*>& runs, int64_t since_ns, int64_t now_ns, const RestartCost& low,
                  const RestartCost& high) {
  v1::Saved saved;
  saved.set_since_ns(since_ns);
  saved.set_until_ns(now_ns);
  std::map<Death, uint32_t> deaths;
  for (const v1::JobSums* const sums : runs) {
    const int64_t ended_ns = std::min(sums->attached() > 0 ? now_ns : sums->ended_ns(), now_ns);
    if (ended_ns < since_ns) continue;
    const JobAccount at_low = AccountOf(*sums, low), at_high = AccountOf(*sums, high);
    uint32_t masked = 0;
    for (const JobAccount::Fault& judged : at_low.faults) {
      if (judged.fault->time_ns() < since_ns) continue;
      if (judged.fault->on_purpose())
        saved.set_on_purpose(saved.on_purpose() + 1);
      else if (judged.masked)
        ++masked;
      else if (!judged.open)
        saved.set_faults_not_masked(saved.faults_not_masked() + 1);
    }
    saved.set_faults_masked(saved.faults_masked() + masked);
    saved.set_reduced_ns(saved.reduced_ns() + ReducedSince(*sums, since_ns, ended_ns));
    if (at_low.death != Death::kNone && at_low.died_ns >= since_ns) ++deaths[at_low.death];
    int64_t first_low_ns = 0, first_high_ns = 0;
    const uint32_t restarts_low = RestartsSince(at_low, since_ns, &first_low_ns);
    const uint32_t restarts_high = RestartsSince(at_high, since_ns, &first_high_ns);
    if (masked > 0) saved.set_jobs(saved.jobs() + 1);
    if (first_low_ns != 0) saved.set_alive_ns(saved.alive_ns() + std::max<int64_t>(ended_ns - first_low_ns, 0));
    // The more a restart costs, the more faults it covers: the cost of all is ordered, their number is not.
    const double cost_low = static_cast<double>(low.each_ns()) * restarts_low * sums->processes() / kNanosPerHour;
    const double cost_high = static_cast<double>(high.each_ns()) * restarts_high * sums->processes() / kNanosPerHour;
    saved.set_gpu_hours_low(saved.gpu_hours_low() + std::min(cost_low, cost_high));
    saved.set_gpu_hours_high(saved.gpu_hours_high() + std::max(cost_low, cost_high));
    saved.set_restarts(saved.restarts() + restarts_high);
  }
  for (const auto& [death, jobs] : deaths) {
    v1::Saved::Died& died = *saved.add_died();
    died.set_cause(DeathName(death));
    died.set_jobs(jobs);
  }
  return saved;
}

}  // namespace r2cc
