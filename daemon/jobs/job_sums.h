// Adds up what the processes of one job met: those of a node, and then the nodes. Pure.
#ifndef R2CC_DAEMON_JOBS_JOB_SUMS_H_
#define R2CC_DAEMON_JOBS_JOB_SUMS_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

// Processes that lost the same rail within this time lost it by the same fault: a NIC's links are given up one after the other. A rail of
// several nodes has one name, and one restart would have mended what happened to it on all of them at once.
constexpr int64_t kOneFaultNs = 2'000'000'000;
// Entries that are kept of a job; further ones are counted.
constexpr int kSummedFaultsMax = 256;
constexpr int kFaultNodesMax = 8;
constexpr int kGaveUpLinesMax = 64;
// Stalls of all faults together still fit into 64 bits.
constexpr int64_t kStallMostNs = 365 * 24 * 3600 * int64_t{1'000'000'000};

// Operations that failed.
constexpr int kSummedFailuresMax = 32;
// Communicators of a job whose AllReduce way is in its sums.
constexpr int kSummedWaysMax = 64;

// How much the name of a cause shows of a fault. 0: what one end sees of the other end's fault. 1: also what an operator does shows so.
// From kFaultsCauseRank on it is a fault. If several causes belong to one loss, the highest rank names it: the order of two clocks is not
// known.
constexpr int kFaultsCauseRank = 2;
int CauseRank(const std::string& cause);

// User, name and run of a job. Without a run id that its processes share: "@" and when the first of them began.
using JobKey = std::tuple<uint32_t, std::string, std::string>;
using WholeJobs = std::map<JobKey, v1::ReportJobsReply::Whole>;

// Adds one process of `node` to its run of its job: that with its shared run id, else one that ran when the process began. So processes
// come in the order of their begin. `now_ns`: CLOCK_REALTIME.
void AddProcess(const v1::Job& process, const std::string& node, int64_t now_ns, WholeJobs* jobs);

// Adds the report of `node`'s daemon about a job to what is known of it. Nothing is trusted: names are cleaned, everything is bounded. Its
// clock is ahead of this node's by `clock_ahead_ns`. False: it is none of `jobs`. Without a shared run id it is the run at the same time.
bool AddNode(const v1::ReportJobsReply::Whole& reported, const std::string& node, int64_t clock_ahead_ns, int64_t now_ns, WholeJobs* jobs);

// The same; a run that is none of `jobs` becomes one.
void AddOrBegin(const v1::ReportJobsReply::Whole& reported, const std::string& node, int64_t clock_ahead_ns, int64_t now_ns,
                WholeJobs* jobs);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_JOBS_JOB_SUMS_H_
