// What a file says of a job. Pure.
#ifndef R2CC_DAEMON_JOBS_KEPT_JOB_H_
#define R2CC_DAEMON_JOBS_KEPT_JOB_H_

#include "proto/jobs.pb.h"

namespace r2cc::daemon {

// What is read from a file is bounded and clean as what a process says.
v1::Job Cleaned(v1::Job job);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_JOBS_KEPT_JOB_H_
