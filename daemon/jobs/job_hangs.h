// Names the processes of jobs that make no progress, and what they wait for.
#ifndef R2CC_DAEMON_JOBS_JOB_HANGS_H_
#define R2CC_DAEMON_JOBS_JOB_HANGS_H_

#include <functional>
#include <string>

#include "daemon/core/event_reporter.h"
#include "daemon/jobs/hang_watch.h"
#include "daemon/jobs/job_registry.h"

namespace r2cc::daemon {

// "train (pid 4711)"
std::string JobName(const v1::Job& job);

// The core's thread only.
class JobHangs {
 public:
  // All outlive it. `may_report`: whether the process may make one more event.
  JobHangs(EventReporter* reporter, JobRegistry* registry, std::function<bool(JobId id)> may_report)
      : reporter_(reporter), registry_(registry), may_report_(std::move(may_report)) {}

  void OnAttach(JobId id) { watch_.Attached(id, reporter_->Now().monotonic_ns); }
  // Before the registry takes it.
  void OnRecord(JobId id, const plan::EvidenceRecord& record);
  void OnEnd(JobId id) { watch_.Gone(id); }
  // At least twice a second.
  void Tick();

  // For how long the process has made no progress; 0: it makes some.
  Nanos WaitedBy(JobId id) const;

 private:
  void OnWaiting(JobId id, const v1::Job& job, const plan::EvidenceRecord& record, const Moment& now);
  void Report(const HangWatch::Turn& turn, const v1::Job& job);

  EventReporter* const reporter_;
  JobRegistry* const registry_;
  const std::function<bool(JobId id)> may_report_;
  HangWatch watch_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_JOBS_JOB_HANGS_H_
