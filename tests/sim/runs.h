// The runs of a job, one after the other on the same nodes: the next process of a node begins some time after the one before it has ended.
#ifndef R2CC_TESTS_SIM_RUNS_H_
#define R2CC_TESTS_SIM_RUNS_H_

#include <functional>
#include <utility>
#include <vector>

#include "tests/sim/process.h"

namespace r2cc::sim {

class Runs {
 public:
  // `processes`: those of the first run, which begin themselves, then those of the second. `begun` is called when a process has begun, and
  // `launched` when all of a run have.
  Runs(Timeline* timeline, std::vector<Process*> processes, int runs, std::function<void(Process*)> begun, std::function<void()> launched);

  // Runs that have begun on all nodes.
  int launched() const { return launched_; }
  bool all_launched() const { return launched_ == runs_; }
  // The last process began.
  Nanos last_begin() const { return last_begin_; }
  bool IsLaunched(const Process& process) const { return process.host() < nodes_ * launched_; }
  bool IsOfLast(const Process& process) const { return process.host() >= nodes_ * (runs_ - 1); }
  // The process that runs on the node, or ran there last.
  Process* Current(int node) const;

 private:
  void Look();

  Timeline* const timeline_;
  const std::vector<Process*> processes_;
  const int runs_;
  const int nodes_;
  const std::function<void(Process*)> begun_;
  const std::function<void()> launched_call_;
  std::vector<Nanos> begin_at_;  // by node: the next process begins; 0: it waits for the one before it
  int launched_ = 1;             // runs
  Nanos last_begin_ = 0;
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_RUNS_H_
