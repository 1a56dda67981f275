// Runs one rank of a job, from loading the plugin to its last line of output.
#ifndef R2CC_TOOLS_PERF_RANK_H_
#define R2CC_TOOLS_PERF_RANK_H_

#include <string>

#include "tools/perf/options.h"

namespace r2cc::perf {

// Threads: this one (NCCL's user thread: init, data, bootstrap), a service and a progress thread, and those of the plugin. listen_fd: rank
// 0's bootstrap socket, already listening; other ranks: -1, they connect to options.root. SIGINT and SIGTERM end the job after the current
// iteration, on all ranks, with the usual report; a second signal ends this process. Returns the exit code. After a failure the process
// ends inside, because a plugin that failed cannot be trusted to shut down.
int RunRank(const Options& options, int rank, int listen_fd);

}  // namespace r2cc::perf

#endif  // R2CC_TOOLS_PERF_RANK_H_
