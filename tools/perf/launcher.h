// Starts all ranks of a job on this machine, one process each.
#ifndef R2CC_TOOLS_PERF_LAUNCHER_H_
#define R2CC_TOOLS_PERF_LAUNCHER_H_

#include "tools/perf/options.h"

namespace r2cc::perf {

// Runs options.ranks processes to their end. SIGINT and SIGTERM go to rank 0, which ends the job normally; a second signal kills all ranks.
// The ranks die with this process. Returns the exit code of the job.
int LaunchLocalRanks(const Options& options);

}  // namespace r2cc::perf

#endif  // R2CC_TOOLS_PERF_LAUNCHER_H_
