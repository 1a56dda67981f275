// `r2ccctl job report`: what a job met and what it would have cost without R2CC. Pure.
#ifndef R2CC_CLIENT_JOBS_JOB_REPORT_H_
#define R2CC_CLIENT_JOBS_JOB_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client/format.h"
#include "proto/r2cc.pb.h"
#include "proto/report.pb.h"

namespace r2cc::client {

// What only the job's owner knows. 0: not said.
struct RestartCost {
  int64_t restart_ns = 0;     // from the error until the job computes again
  int64_t checkpoint_ns = 0;  // between two checkpoints
};

// Processes of one name are one job. One that lost the same rail within this time lost it by the same fault: a NIC's links are given up one
// after the other.
constexpr int64_t kOneFaultNs = 2'000'000'000;

// `jobs`: those attached and those that ended, of the daemon of `node`. By begin, the newest first. `now_ns`: CLOCK_REALTIME.
v1::JobReports MakeReports(const std::vector<v1::Job>& jobs, const std::string& node, const RestartCost& cost, int64_t now_ns);

std::string FormatReports(const v1::JobReports& reports, const Style& style);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_JOBS_JOB_REPORT_H_
