// Converts the cluster's view to the planner's model, and a plan to messages and text. Pure.
#ifndef R2CC_DAEMON_PAGE_PLAN_MODEL_H_
#define R2CC_DAEMON_PAGE_PLAN_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/page/page_scope.h"
#include "health/io/topology.h"
#include "health/view/cluster_view.h"
#include "health/view/node_state.h"
#include "plan/model.h"
#include "plan/routes.h"
#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

// Broken paths that one node may report. A node has at most as many NICs, and a path is one of theirs to one other.
constexpr size_t kBrokenPathsPerNodeMax = 64;

// The planner's input from the view, for the nodes in `scope`. `since` 0: all of these. Otherwise a part (plan/planner.h): the nodes that
// changed since the view's revision was `since`, and the ends of broken paths. At most plan::kBrokenPathsMax paths, those of `own_node`
// first.
plan::ClusterModel ToModel(const health::ClusterView& view, uint64_t since = 0, const PageScope& scope = {},
                           const std::string& own_node = "");

// The topology of the machine, for the planner. `planned`: the plan's entries for the NICs of `own`. Distances are health::PcieDistance's.
std::vector<plan::GpuModel> ToGpuModels(const health::NodeTopology& topology, const health::NodeState& own,
                                        const std::vector<plan::PlannedNic>& planned);

v1::Plan ToProto(const plan::Plan& plan);

// The changes in `after`, for people: "n1/rail0 FAILED 0 (was HEALTHY 1000)", a few of them.
std::string DescribeChange(const plan::Plan& before, const plan::Plan& after);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_PAGE_PLAN_MODEL_H_
