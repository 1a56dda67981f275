// Reports state changes of other nodes' NICs as events, at a bounded rate for each node.
#ifndef R2CC_DAEMON_PEERS_NIC_CHANGES_H_
#define R2CC_DAEMON_PEERS_NIC_CHANGES_H_

#include <cstdint>
#include <map>
#include <string>

#include "base/core/token_bucket.h"
#include "daemon/core/event_reporter.h"
#include "health/view/cluster_view.h"
#include "health/view/node_state.h"

namespace r2cc::daemon {

// The core's thread only.
class NicChanges {
 public:
  // Both outlive it.
  NicChanges(const health::ClusterView* view, EventReporter* reporter) : view_(view), reporter_(reporter) {}

  // `before`: null if the node was not known, which is no change. Changes beyond the node's rate are counted and logged.
  void Report(const health::NodeState* before, const health::NodeState& after);

 private:
  struct Changes {
    TokenBucket allowance;
    uint64_t suppressed = 0;
  };

  const health::ClusterView* const view_;
  EventReporter* const reporter_;
  std::map<std::string, Changes> changes_;  // by node
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_PEERS_NIC_CHANGES_H_
