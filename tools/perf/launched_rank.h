// Finds which rank of a job this process is, from the environment that its launcher set. Pure.
#ifndef R2CC_TOOLS_PERF_LAUNCHED_RANK_H_
#define R2CC_TOOLS_PERF_LAUNCHED_RANK_H_

#include <functional>
#include <optional>
#include <string>

#include "tools/perf/status.h"

namespace r2cc::perf {

// The environment: a variable's value, or nullptr.
using Environment = std::function<const char*(const char* name)>;

struct LaunchedRank {
  std::string launcher;  // for messages
  int rank = 0;          // below `ranks`
  int ranks = 0;         // 2 to kRanksMax
  std::string root;      // MASTER_ADDR:MASTER_PORT; empty: the environment does not have it
};

// Nothing: no known launcher started this process. If one launcher runs inside another, the inner one counts: mpirun in a job of Slurm. An
// error, in one line, if its values are no rank of a job.
Status FindLaunchedRank(const Environment& environment, std::optional<LaunchedRank>* found);

}  // namespace r2cc::perf

#endif  // R2CC_TOOLS_PERF_LAUNCHED_RANK_H_
