// Keeps the runs of jobs on this node that met something and whose processes' own records are gone. Pure.
#ifndef R2CC_DAEMON_JOBS_SAVED_RUNS_H_
#define R2CC_DAEMON_JOBS_SAVED_RUNS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "daemon/jobs/job_sums.h"
#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

class SavedRuns {
 public:
  // A run keeps some 300 bytes, and a node loses a rail a few times a month.
  static constexpr size_t kRunsMax = 512;
  // Faults of one run; older ones are only counted. A rail that flaps for days reaches this.
  static constexpr int kFaultsMax = 64;
  static constexpr int kLinesMax = 4;
  static constexpr int kHeldMax = 1;  // operations that one fault held up
  // Runs that ended longer ago are forgotten.
  static constexpr int64_t kAgeMaxNs = 30 * 24 * 3600 * int64_t{1'000'000'000};

  // A process that ended. One that met nothing saves nothing.
  void Add(const v1::Job& process);
  void Forget(int64_t now_ns);

  void ToKeep(v1::KeptJobs* kept) const;
  // Believes nothing that is out of bounds.
  void Restore(const v1::KeptJobs& kept, int64_t now_ns);

  const WholeJobs& runs() const { return runs_; }

 private:
  void Bound();
  WholeJobs runs_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_JOBS_SAVED_RUNS_H_
