// Makes lists of the whole cluster, a part at a time: 10,000 nodes exceed one gRPC message, and the core must not be busy with one answer
// for long. Pure functions of the view and the plan; a request that names no part begins at the start.
#ifndef R2CC_DAEMON_SERVICES_FLEET_PAGES_H_
#define R2CC_DAEMON_SERVICES_FLEET_PAGES_H_

#include <cstddef>
#include <functional>
#include <string>

#include "health/view/cluster_view.h"
#include "plan/model.h"
#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

// A page ends with the node that goes beyond this. gRPC takes 4 MiB at once, and a node is a few kB.
constexpr size_t kPageBytesMax = 1 << 20;
// NICs of a part of the plan, for the same reason: at most 150 bytes each.
constexpr size_t kPagePlannedNicsMax = 4096;
// A longer pattern is no name of nodes.
constexpr size_t kGlobBytesMax = 256;

// How a node is shown.
using ShowNode = std::function<v1::NodeView(const health::NodeEntry&)>;

v1::ClusterSummary Summarise(const health::ClusterView& view);

// `bytes_max`: of a page.
v1::ListNicsReply NicsPage(const v1::ListNicsRequest& request, const health::ClusterView& view, const ShowNode& show,
                           size_t bytes_max = kPageBytesMax);

// Fills in the nodes of `reply`, the summary and what was left out.
void AddStatusNodes(const v1::StatusRequest& request, const health::ClusterView& view, const ShowNode& show, v1::StatusReply* reply,
                    size_t bytes_max = kPageBytesMax);

// The part of `plan` behind `after_node`, whole nodes, and the node that ends it in `next_after`; empty: that is the end.
plan::Plan PlanPage(const plan::Plan& plan, std::string after_node, std::string* next_after, size_t nics_max = kPagePlannedNicsMax);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_SERVICES_FLEET_PAGES_H_
