// A step list's time on a fabric.
#ifndef R2CC_TESTS_FIGURES_SIMULATED_H_
#define R2CC_TESTS_FIGURES_SIMULATED_H_

#include "plan/collective/choose.h"
#include "plan/schedule/schedule.h"
#include "plan/simulate/simulate.h"

namespace r2cc::figures {

// Ends the process, with the simulator's line, where the schedule cannot be run to its end.
plan::SimulateResult Simulated(const plan::Schedule& schedule, const plan::FabricModel& fabric, const plan::SimulateOptions& options = {});

// The largest group of which every member is simulated where one could stand for many.
constexpr size_t kMembersInFull = 64;

struct CandidateRun {
  double seconds = 0;
  bool in_full = true;  // false: one member of a rotation stood for all of it
};

// A candidate's step list on the fabric that it was chosen for: in full up to kMembersInFull members and where the schedule has no
// rotation.
CandidateRun SimulatedCandidate(const plan::Candidate& candidate, uint64_t bytes, const plan::Ports& ports);

}  // namespace r2cc::figures

#endif  // R2CC_TESTS_FIGURES_SIMULATED_H_
