// Finds processes of jobs that make no progress. Pure.
#ifndef R2CC_DAEMON_JOBS_HANG_WATCH_H_
#define R2CC_DAEMON_JOBS_HANG_WATCH_H_

#include <map>
#include <vector>

#include "base/core/clock.h"
#include "daemon/jobs/job_registry.h"

namespace r2cc::daemon {

// A process makes no progress if its plugin reports so: requests are outstanding, and nothing has moved. It also makes none if it moved
// data and then stopped to report, which each plugin does once a second: the process is stopped, or gets no processor. A process that had
// nothing to move when it became silent is not counted.
class HangWatch {
 public:
  // Longer than a lost rail holds up a job (250 ms, and seconds without detection), shorter than R2CC_DEADLINE_MS (30 s).
  static constexpr Nanos kHangAfter = 10 * kNanosPerSecond;

  void Attached(JobId id, Nanos now) { processes_[id] = {.last_received = now}; }
  // The plugin reported anything.
  void NoteAlive(JobId id, Nanos now);
  // The plugin reported its totals; they `changed` since the report before.
  void Totals(JobId id, bool changed, Nanos now);
  // The plugin reported that no request has made progress since; 0: they do, or there are none.
  void Waits(JobId id, Nanos since);
  void Gone(JobId id) { processes_.erase(id); }

  // A process began to hang, or makes progress again.
  struct Turn {
    JobId id = 0;
    bool hangs = false;
    bool silent = false;  // it does not report
    Nanos since = 0;      // it makes no progress, or made none
  };
  // Returns changes since the last call. Call it at least twice a second. Time without a call does not count against a silent process: the
  // daemon itself was stopped.
  std::vector<Turn> Look(Nanos now);

  // At the last look: since when it makes no progress; 0: it does.
  Nanos Since(JobId id) const;

 private:
  struct Process {
    Nanos last_received = 0;
    Nanos moved = 0;       // at its last report of totals that had changed; 0: never
    bool reports = false;  // its totals are known
    Nanos waits_since = 0;
    Nanos since = 0;  // at the last look
    Nanos hung_since = 0;
  };
  std::map<JobId, Process> processes_;
  Nanos looked_ = 0;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_JOBS_HANG_WATCH_H_
