// `r2ccctl conditions`: keeps the condition R2CCRailDegraded of each node of Kubernetes, and makes Events of its changes, until it is
// ended.
#ifndef R2CC_CLIENT_CONDITIONS_CONDITIONS_H_
#define R2CC_CLIENT_CONDITIONS_CONDITIONS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/conditions/conditions_command.h"
#include "client/conditions/kubernetes_api.h"
#include "client/conditions/node_conditions.h"
#include "proto/r2cc.pb.h"

namespace r2cc::client {

// A condition whose heartbeat is another writer's is left to it for this time: three heartbeats, which node-problem-detector and this
// program both write each 5 minutes.
constexpr Nanos kOtherWriterLasts = 15 * 60 * kNanosPerSecond;

// The name under which Kubernetes keeps that this program wrote a field. `account`: a directory whose file `namespace` names the pod's
// namespace, so that two clusters of R2CC in one of Kubernetes have two names.
std::string FieldManager(const std::string& account);

// Writes one condition as `manager`: looks at the node, patches its status, and makes an Event if the status turned. FAILED_PRECONDITION,
// with nothing changed: another manager wrote it within kOtherWriterLasts.
absl::Status WriteCondition(const NodeConditions::Write& write, const std::string& manager, int64_t now_realtime_ns, KubernetesApi* api);

// Hands over the conditions that `manager` wrote to Kubernetes, so that one of a node that left while this program did not run is not
// believed for ever.
absl::Status AdoptConditions(KubernetesApi* api, const std::string& manager, Nanos now, NodeConditions* conditions);

struct ConditionsWorld {
  std::function<absl::StatusOr<std::vector<v1::NodeView>>()> nodes;  // of the cluster, as a daemon sees it
  std::string manager;
  KubernetesApi* api;
  std::function<int64_t()> now_realtime_ns;
  std::function<Nanos()> now;
  std::function<void(const std::string&)> log;  // a line for the log, when something changes
  std::function<bool(int milliseconds)> wait;   // false: it is to end
};
void FollowConditions(const ConditionsWorld& world);

// The exit code.
int Run(const ConditionsCommand& command, const std::function<int64_t()>& now_realtime_ns,
        const std::function<bool(int milliseconds)>& wait);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_CONDITIONS_CONDITIONS_H_
