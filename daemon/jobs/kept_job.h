// Cleans a job that was read from a file. Pure.
#ifndef R2CC_DAEMON_JOBS_KEPT_JOB_H_
#define R2CC_DAEMON_JOBS_KEPT_JOB_H_

#include "proto/jobs.pb.h"

namespace r2cc::daemon {

// A job from a file is bounded and cleaned like a report of a process.
v1::Job Cleaned(v1::Job job);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_JOBS_KEPT_JOB_H_
