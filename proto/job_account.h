// What a run of a job met comes to: which faults were masked, how many restarts that saved, and why it died. `r2ccctl job report`,
// `r2ccctl report` and r2ccd's metrics are made of it. Pure.
#ifndef R2CC_PROTO_JOB_ACCOUNT_H_
#define R2CC_PROTO_JOB_ACCOUNT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/jobs.pb.h"

namespace r2cc {

struct RestartCost {
  int64_t restart_ns = 0;     // from the error until the job computes again
  int64_t checkpoint_ns = 0;  // between two checkpoints
  // A restart, and half of the time between two checkpoints done again, on average.
  int64_t each_ns() const { return restart_ns + checkpoint_ns / 2; }
};

// The cost of a restart if the job's owner does not give it: a small job that is started again at once, and a large one that waits for its
// nodes and loads a checkpoint.
constexpr RestartCost kRestartCostLow{5 * 60 * int64_t{1'000'000'000}, 10 * 60 * int64_t{1'000'000'000}};
constexpr RestartCost kRestartCostHigh{15 * 60 * int64_t{1'000'000'000}, 3600 * int64_t{1'000'000'000}};

// Why a run ended early. The names are a closed list, as they are labels of a metric.
enum class Death { kNone, kNoRail, kRankLost, kOther };
constexpr Death kDeaths[] = {Death::kNoRail, Death::kRankLost, Death::kOther};
const char* DeathName(Death death);  // "no-rail", "rank-lost", "other"; "" for kNone
const char* DeathText(Death death);  // for people

struct JobAccount {
  struct Fault {
    const v1::Job::Fault* fault = nullptr;
    bool masked = false;        // the job went on
    bool open = false;          // it runs, and has made no progress past it yet
    bool restart = false;       // it would have cost a restart of its own
    bool same_restart = false;  // one restart would have covered it together with the one before
  };
  std::vector<Fault> faults;  // by time
  // What was done on purpose (fail-nic, a drain at once, R2CC_FAIL_RAILS) is none of these; it is listed all the same, as the job may have
  // died of it.
  uint32_t masked = 0, open = 0, not_masked = 0;
  uint32_t on_purpose = 0;
  // Faults that were masked, those that one restart would have covered counted once.
  uint32_t restarts = 0;
  Death death = Death::kNone;
  int64_t died_ns = 0;  // 0: it did not, or it is not known when
};

// The account points into `sums`.
JobAccount AccountOf(const v1::JobSums& sums, const RestartCost& cost);

// Failures of a run, the one first that the others follow from.
std::vector<const v1::JobFailure*> FailuresByCause(const v1::JobSums& sums);

// What all these runs come to from `since_ns` until `now_ns`. `low`, `high`: two assumptions of what a restart costs.
v1::Saved SavedBy(const std::vector<const v1::JobSums*>& runs, int64_t since_ns, int64_t now_ns, const RestartCost& low,
                  const RestartCost& high);

}  // namespace r2cc

#endif  // R2CC_PROTO_JOB_ACCOUNT_H_
