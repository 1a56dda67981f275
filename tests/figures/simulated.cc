#include "tests/figures/simulated.h"

#include <cstdio>
#include <memory>

#include "base/core/check.h"
#include "plan/simulate/ports_fabric.h"

namespace r2cc::figures {

plan::SimulateResult Simulated(const plan::Schedule& schedule, const plan::FabricModel& fabric, const plan::SimulateOptions& options) {
  plan::SimulateResult result = plan::Simulate(schedule, fabric, options);
  if (!result.error.empty()) std::fprintf(stderr, "%s: %s\n", schedule.name().c_str(), result.error.c_str());
  R2CC_CHECK(result.error.empty());
  return result;
}

CandidateRun SimulatedCandidate(const plan::Candidate& candidate, uint64_t bytes, const plan::Ports& ports) {
  const std::unique_ptr<plan::Schedule> schedule = plan::MakeCandidate(candidate, bytes, ports);
  // A ring through all is a rotation too, but not one whose members have equal ports.
  const bool may_rotate = candidate.kind == plan::ScheduleKind::kDirect || candidate.kind == plan::ScheduleKind::kOptcc;
  const bool in_full = ports.bytes_per_s.size() <= kMembersInFull || !may_rotate || schedule->Rotation().empty();
  return {.seconds = Simulated(*schedule, plan::FabricOf(ports, candidate.kind), {.use_rotation = !in_full}).time_s, .in_full = in_full};
}

}  // namespace r2cc::figures
