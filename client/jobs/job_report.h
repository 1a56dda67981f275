// `r2ccctl job report`: what a job met and what it would have cost without R2CC. Pure.
#ifndef R2CC_CLIENT_JOBS_JOB_REPORT_H_
#define R2CC_CLIENT_JOBS_JOB_REPORT_H_

#include <cstdint>
#include <string>

#include "client/core/style.h"
#include "proto/job_account.h"
#include "proto/r2cc.pb.h"
#include "proto/report.pb.h"

namespace r2cc::client {

// The reports of what a daemon gathered. By begin, the newest first. `cost`: known only to the job's owner; 0: not given.
v1::JobReports MakeReports(const v1::ReportJobsReply& gathered, const RestartCost& cost);

// `r2ccctl report`: `answer` is of a request with this cost.
std::string FormatSaved(const v1::ReportJobsReply& answer, const RestartCost& cost, bool only_here, const Style& style);

std::string FormatReports(const v1::JobReports& reports, const Style& style);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_JOBS_JOB_REPORT_H_
