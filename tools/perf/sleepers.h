// Forks children that sleep, like a job's data loaders: as long as they live they hold a copy of every descriptor that was not marked to
// close, even after the rank itself has died.
#ifndef R2CC_TOOLS_PERF_SLEEPERS_H_
#define R2CC_TOOLS_PERF_SLEEPERS_H_

#include <sys/types.h>

#include <vector>

#include "tools/perf/status.h"

namespace r2cc::perf {

class Sleepers {
 public:
  // Ends them; if the rank is killed before, they end after kLifetimeS.
  ~Sleepers() { End(); }

  static constexpr unsigned kLifetimeS = 300;

  // Prints "r2cc-perf[RANK]: forked child PID" for each on standard error. They keep everything open except the standard streams.
  Status Fork(int count, int rank);
  void End();

 private:
  std::vector<pid_t> pids_;
};

}  // namespace r2cc::perf

#endif  // R2CC_TOOLS_PERF_SLEEPERS_H_
