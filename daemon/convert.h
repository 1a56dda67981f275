// Between the view's and the plan's plain values and the messages of proto/r2cc.proto. Pure. What comes from outside is checked whole
// before any of it is believed.
#ifndef R2CC_DAEMON_CONVERT_H_
#define R2CC_DAEMON_CONVERT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/core/clock.h"
#include "base/core/epoch.h"
#include "base/names.h"
#include "daemon/page/page_scope.h"
#include "health/io/topology.h"
#include "health/view/cluster_view.h"
#include "health/view/node_state.h"
#include "plan/model.h"
#include "plan/routes.h"
#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

// Of what daemons say to each other (r2cc.v1.NodeView.protocol).
constexpr uint32_t kPeerProtocolLeast = 3;  // release 0.2.0 speaks 2 to 3
constexpr uint32_t kPeerProtocol = 3;

// One moment on both clocks: messages carry CLOCK_REALTIME, policy thinks in CLOCK_MONOTONIC.
struct Moment {
  Nanos monotonic_ns = 0;
  int64_t realtime_ns = 0;

  int64_t ToRealtime(Nanos when) const { return realtime_ns - (monotonic_ns - when); }
  Nanos ToMonotonic(int64_t when) const { return monotonic_ns - (realtime_ns - when); }
};

v1::Epoch ToProto(const Epoch& epoch);
Epoch FromProto(const v1::Epoch& epoch);

v1::NicState ToProto(health::NicState state);
v1::NodeWord ToProto(health::NodeStatus status);

v1::NicView ToProto(const health::NicStatus& nic, const Moment& now);
// `status`: the one to show, which may differ from the node's own.
v1::NodeView ToProto(const health::NodeState& state, health::NodeStatus status, const Moment& now);

// INVALID_ARGUMENT with one line if a name, a number, a state or a count is not as it must be. `nics_max`: as limits { nics_per_node } has
// it.
absl::StatusOr<health::NodeState> FromProto(const v1::NodeView& view, const Moment& now, size_t nics_max = kNicsPerNodeDefault);

// Broken paths of which one node's word is taken. A node has at most as many NICs, and a path is one of theirs to one other.
constexpr size_t kBrokenPathsPerNodeMax = 64;

// What the planner needs of the view, of the nodes in `scope`. `since` 0: all of these. Otherwise a part (plan/planner.h): the nodes that
// changed since the view's revision was `since`, and the ends of broken paths. At most plan::kBrokenPathsMax paths, those of `own_node`
// first.
plan::ClusterModel ToModel(const health::ClusterView& view, uint64_t since = 0, const PageScope& scope = {},
                           const std::string& own_node = "");

// The machine's inside, for the planner. `planned`: what the plan says of the NICs of `own`. Distances are health::PcieDistance's.
std::vector<plan::GpuModel> ToGpuModels(const health::NodeTopology& topology, const health::NodeState& own,
                                        const std::vector<plan::PlannedNic>& planned);

v1::Plan ToProto(const plan::Plan& plan);

// What is new in `after`, for people: "n1/rail0 FAILED 0 (was HEALTHY 1000)", a few of them.
std::string DescribeChange(const plan::Plan& before, const plan::Plan& after);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_CONVERT_H_
