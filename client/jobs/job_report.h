// `r2ccctl job report`: what a job met and what it would have cost without R2CC. Pure.
#ifndef R2CC_CLIENT_JOBS_JOB_REPORT_H_
#define R2CC_CLIENT_JOBS_JOB_REPORT_H_

#include <cstdint>
#include <string>

#include "client/format.h"
#include "proto/r2cc.pb.h"
#include "proto/report.pb.h"

namespace r2cc::client {

// What only the job's owner knows. 0: not said.
struct RestartCost {
  int64_t restart_ns = 0;     // from the error until the job computes again
  int64_t checkpoint_ns = 0;  // between two checkpoints
};

// Of what a daemon gathered. By begin, the newest first.
v1::JobReports MakeReports(const v1::ReportJobsReply& gathered, const RestartCost& cost);

std::string FormatReports(const v1::JobReports& reports, const Style& style);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_JOBS_JOB_REPORT_H_
