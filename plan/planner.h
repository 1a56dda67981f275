// From a view of the cluster to a plan: a pure function.
#ifndef R2CC_PLAN_PLANNER_H_
#define R2CC_PLAN_PLANNER_H_

#include <string>

#include "plan/model.h"

namespace r2cc::plan {

// The plan for `cluster`, stamped with `epoch`. FAILED, PROVING and DRAINED NICs get weight 0; HEALTHY, SUSPECT and DEGRADED ones
// the least of
//  - the operator's weight,
//  - what the NIC's rate is of the best rate among its node's NICs (of any state), where both are known, and
//  - CapOfShare of what jobs report that it moves, compared with their best, but for that not less than kReportedWeightMinPermille.
// For the jobs that the operator keeps off a NIC it is drained besides.
// A broken path is forbidden if both its ends carry traffic: otherwise there is none to forbid.
Plan MakePlan(const ClusterModel& cluster, const Epoch& epoch);

// Empty if `plan` may be published for `cluster`; otherwise one line that states the fault: a NIC twice or missing, a
// weight over kFullWeightPermille, a failed or drained NIC with a weight, a working one with less than the operator, its rate and
// kReportedWeightMinPermille allow, a NIC drained for other jobs, a path forbidden that the model does not have as broken.
std::string CheckPlan(const Plan& plan, const ClusterModel& cluster);

// A large cluster is planned in parts: the nodes that changed, and, because a path has two ends, those with a broken path.
// A part is a ClusterModel with all the broken paths of the cluster, and has a plan as any other.
//
// The entries of `plan` for the nodes of `part` and for all paths: compared with the part's new plan.
Plan PartOf(const Plan& plan, const ClusterModel& part);

// `plan` with its entries for the nodes of `part`, and for paths, replaced by `planned`, which is MakePlan's for `part`, and its epoch. It
// equals MakePlan for the whole cluster, if `plan` was that before `part` changed. REQUIRES: in all three the nodes are in the order of
// their names, as in the result of MakePlan for a model in that order.
Plan Replace(const Plan& plan, const ClusterModel& part, const Plan& planned);

// Why `nic` of `node` has the weight that MakePlan gives it: one line for a person.
std::string WeightReason(const NodeModel& node, const NicModel& nic);

}  // namespace r2cc::plan

#endif  // R2CC_PLAN_PLANNER_H_
