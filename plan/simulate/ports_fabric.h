// The fabric on which the simulator runs what was chosen for some ports.
#ifndef R2CC_PLAN_SIMULATE_PORTS_FABRIC_H_
#define R2CC_PLAN_SIMULATE_PORTS_FABRIC_H_

#include "plan/collective/choose.h"
#include "plan/simulate/fabric.h"

namespace r2cc::plan {

// The fabric of `ports`: for "ring" with separate rails, the dead ones far from each other.
FabricModel FabricOf(const Ports& ports, ScheduleKind kind);

}  // namespace r2cc::plan

#endif  // R2CC_PLAN_SIMULATE_PORTS_FABRIC_H_
