// Runs a schedule's step list on a fabric, at flow level: each transfer is a fluid whose rate changes only when some transfer begins or
// ends or a rail changes.
//
// Ports are shared by weighted max-min fairness: no transfer could get more without taking from one that has no more for its weight.
// Equal weights are what many long TCP or RDMA streams settle at; a lane's weight is the pace at which an executor posts its chunks.
#ifndef R2CC_PLAN_SIMULATE_SIMULATE_H_
#define R2CC_PLAN_SIMULATE_SIMULATE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/core/function_ref.h"
#include "plan/schedule/schedule.h"
#include "plan/simulate/fabric.h"

namespace r2cc::plan {

struct TransferTrace {
  double begin_s = 0;  // due at both ends; latency included
  double end_s = 0;
  uint32_t from = 0;
  uint32_t from_lane = 0;
  uint32_t to = 0;
  uint32_t to_lane = 0;
  bool adds = false;  // the receiver adds the bytes to its own
  Range range;
};

struct SimulateOptions {
  std::span<const RailChange> changes;  // in order of time
  // Simulate one member of the schedule's rotation for all of them. Refused unless they have equal ports; gives the same times (the
  // solution of the max-min problem is unique, so members that do the same get the same).
  bool use_rotation = false;
  // Called at the end of each transfer. With use_rotation, for the first member of the rotation and those outside it.
  const FunctionRef<void(const TransferTrace&)>* trace = nullptr;
};

struct SimulateResult {
  std::string error;  // empty, or one line: why it cannot be run to its end
  double time_s = 0;
  uint64_t transfers = 0;  // executed
  // Bytes that came in over each server's rails, payload only. Not filled in with use_rotation.
  std::vector<double> received_bytes;
};

// `schedule` must have passed CheckSchedule() or come from a generator that is tested with it.
SimulateResult Simulate(const Schedule& schedule, const FabricModel& fabric, const SimulateOptions& options = {});

}  // namespace r2cc::plan

#endif  // R2CC_PLAN_SIMULATE_SIMULATE_H_
