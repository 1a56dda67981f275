// What a seed stands for: a topology, a job and a plan of faults.
#ifndef R2CC_TESTS_SIM_SCENARIO_H_
#define R2CC_TESTS_SIM_SCENARIO_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/faults.h"
#include "tests/sim/group_job.h"
#include "tests/sim/job.h"
#include "tests/sim/verbs_rails.h"

namespace r2cc::sim {

enum class Class {
  kCalm,      // stops, short clogs, jitter, pauses and slow rails only: nothing may be fenced
  kHealing,   // whatever heals: nothing may fail
  kGone,      // a process or a host ends in mid-job
  kDeadline,  // no rail for longer than the deadline
};
const char* Name(Class kind);

struct Scenario {
  Class kind = Class::kHealing;
  bool full_fabric = false;
  int runs = 1;                           // of the job, one after the other: each has a process on each node
  std::vector<ProcessOptions> processes;  // those of the first run, then those of the next one
  std::vector<std::pair<std::pair<Port, Port>, PathOptions>> paths;
  size_t send_buffer_bytes = 32 * 1024;
  size_t receive_buffer_bytes = 64 * 1024;
  size_t backlog = 4096;                   // connections that wait to be accepted
  std::optional<VerbsRailsOptions> verbs;  // nothing: rails are the network's own
  std::vector<FlowPlan> flows;             // of the first run; the others have the same
  std::optional<GroupPlan> group;          // of all processes
  std::vector<Fault> faults;
  // The faults of one come again in the next. What daemons and peers keep must not grow from the second to the last.
  int rounds = 1;
  Nanos round = 0;
  int daemons = 0;     // nodes with a daemon: those of the processes come first
  bool twins = false;  // the daemons call NICs 0 and 1 by names of one hash

  // Of each process.
  std::vector<int> Rails() const;
  // How long after a run's begin all is posted, if nothing holds it up.
  Nanos LastPost() const;
  int Nodes() const { return static_cast<int>(processes.size()) / runs; }
  std::string Text() const;
  // The class, and the fault that makes it: to group what failed.
  std::string Summary() const;
};

Scenario MakeScenario(uint64_t seed, Rails rails = Rails::kNetwork);

// What it consists of, in this order. `scenario->kind` is there.
void MakeTopology(Random* random, Scenario* scenario);
// Which rails are joined: all pairs of a full fabric; in a rail-only one those of one number, as links do.
void MakePaths(Random* random, Scenario* scenario, Nanos jitter_most);
void MakeFlows(Random* random, Scenario* scenario);
// What a fabric does, and what the peers must be for it.
void MakeVerbs(Random* random, bool link_monitor, Scenario* scenario);
// Between the ends of some flow.
Fault MakeFault(Random* random, const Scenario& scenario, FaultKind kind);

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_SCENARIO_H_
