// Converts between a node's plain state and the messages of proto/r2cc.proto. Pure. A message from outside is checked as a whole before
// any of it is used.
#ifndef R2CC_DAEMON_CORE_CONVERT_H_
#define R2CC_DAEMON_CORE_CONVERT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/core/clock.h"
#include "base/core/epoch.h"
#include "base/names.h"
#include "health/view/nic_state.h"
#include "health/view/node_state.h"
#include "plan/model.h"
#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

// Versions of the protocol between daemons (r2cc.v1.NodeView.protocol).
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

plan::PlannedState ToPlan(health::NicState state);
v1::NicState ToProto(plan::PlannedState state);
v1::NicState ToProto(health::NicState state);
v1::NodeStatus ToProto(health::NodeStatus status);

v1::NicView ToProto(const health::NicStatus& nic, const Moment& now);
// `status`: the one to show, which may differ from the node's own.
v1::NodeView ToProto(const health::NodeState& state, health::NodeStatus status, const Moment& now);

// INVALID_ARGUMENT with one line if a name, a number, a state or a count is not as it must be. `nics_max`: as limits { nics_per_node } has
// it.
absl::StatusOr<health::NodeState> FromProto(const v1::NodeView& view, const Moment& now, size_t nics_max = kNicsPerNodeDefault);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_CORE_CONVERT_H_
