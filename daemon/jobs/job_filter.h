// Selects jobs for a list. Pure.
#ifndef R2CC_DAEMON_JOBS_JOB_FILTER_H_
#define R2CC_DAEMON_JOBS_JOB_FILTER_H_

#include <algorithm>
#include <cstddef>
#include <string>

#include "base/core/glob.h"
#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

// Patterns come from callers; one that is longer matches nothing.
constexpr size_t kJobGlobBytesMax = 256;

// A rail was given up, records were lost, a rail is none of the node's NICs, a peer could not be reached, or the job hangs.
inline bool IsBad(const v1::Job& job) {
  return job.evidence_dropped() > 0 || job.gave_up_size() > 0 || job.waiting().hangs() ||
         std::any_of(job.rails().begin(), job.rails().end(),
                     [](const v1::RailTotals& rail) { return rail.failovers() > 0 || rail.nic().empty(); });
}

// By its name or its run; 123 fits 123.0 and 123-r1, too: a step of Slurm's job 123, and its second try.
inline bool JobFits(const std::string& glob, const std::string& job, const std::string& run) {
  if (glob.empty()) return true;
  if (glob.size() > kJobGlobBytesMax) return false;
  return GlobFits(glob, job) || (!run.empty() && (GlobFits(glob, run) || GlobFits(glob, run.substr(0, run.find('.'))) ||
                                                  GlobFits(glob, run.substr(0, run.rfind("-r")))));
}

inline bool Wanted(const v1::ListJobsRequest& request, const v1::Job& job) {
  const auto fits = [](const std::string& glob, const std::string& text) {
    return glob.empty() || (glob.size() <= kJobGlobBytesMax && GlobFits(glob, text));
  };
  const auto over = [&](const v1::RailTotals& rail) { return rail.nic() == request.nic(); };
  const auto with = [&](const std::string& peer) { return fits(request.node_glob(), peer); };
  return (!request.bad() || IsBad(job)) && JobFits(request.job_glob(), job.job(), job.run()) &&
         (!request.has_uid() || request.uid() == job.uid()) &&
         (request.nic().empty() || std::any_of(job.rails().begin(), job.rails().end(), over)) &&
         (request.node_glob().empty() || std::any_of(job.peer_nodes().begin(), job.peer_nodes().end(), with));
}

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_JOBS_JOB_FILTER_H_
