// Computes the condition R2CCRailDegraded of each node, and what to write of it to Kubernetes. Pure.
//
// True: a rail that should work is not usable; jobs go on over the others. Unknown: nothing comes from the node's r2ccd, or a rail is being
// proved. It is the result of `r2ccctl ready --npd` on each node, so it is not for clusters whose node-problem-detector writes it.
#ifndef R2CC_CLIENT_CONDITIONS_NODE_CONDITIONS_H_
#define R2CC_CLIENT_CONDITIONS_NODE_CONDITIONS_H_

#include <map>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "proto/r2cc.pb.h"

namespace r2cc::client {

inline constexpr char kConditionType[] = "R2CCRailDegraded";

enum class ConditionStatus { kTrue, kFalse, kUnknown };
// "True", "False", "Unknown"
std::string ToText(ConditionStatus status);

struct NodeCondition {
  ConditionStatus status = ConditionStatus::kUnknown;
  std::string reason;   // one word
  std::string message;  // of 1,024 bytes at most

  friend bool operator==(const NodeCondition&, const NodeCondition&) = default;
};

NodeCondition ConditionOf(const v1::NodeView& node);

// Decides which writes are due, and when.
class NodeConditions {
 public:
  // A condition that does not change is written again after this, so that its heartbeat shows that somebody looks.
  static constexpr Nanos kHeartbeat = 5 * 60 * kNanosPerSecond;
  // Another text of the same status is written no sooner.
  static constexpr Nanos kTextInterval = 60 * kNanosPerSecond;
  // Between two attempts to write one node's, so that a NIC that flaps makes no more Events than that.
  static constexpr Nanos kPause = 10 * kNanosPerSecond;
  // A node that no view names for this time has left: its last condition must not be believed forever.
  static constexpr Nanos kGone = 5 * 60 * kNanosPerSecond;
  // In one look, so that a switch that dies asks the API server for no more than that at once.
  static constexpr size_t kPerLookMax = 50;
  // Nodes that are kept: more than any cluster of Kubernetes has.
  static constexpr size_t kNodesMax = 65'536;

  struct Write {
    std::string node;
    NodeCondition condition;
    // The status has changed: lastTransitionTime is now, and an Event reports it.
    bool turned = false;

    // No daemon receives anything from the node: Kubernetes may have lost it, too.
    bool may_have_left() const;
  };
  // Kubernetes has this condition of a node, from an earlier run of this program; its heartbeat is due. It has no effect on a node that
  // is known already.
  void Adopt(const std::string& node, const NodeCondition& condition, Nanos now);
  // The writes that are due if these are all the nodes now.
  std::vector<Write> Look(const std::vector<v1::NodeView>& nodes, Nanos now);
  // It was written, or it was not.
  void Delivered(const Write& write, Nanos now);
  void Failed(const Write& write, Nanos now, Nanos pause = kPause);
  // Kubernetes has no such node, or another writer has its condition. That of a node that has left is forgotten.
  void NotOurs(const Write& write, Nanos now);
  bool Knows(const std::string& node) const { return known_.contains(node); }

 private:
  struct Known {
    NodeCondition condition;
    bool written = false;
    Nanos written_at = 0;
    Nanos not_before = 0;
    Nanos seen = 0;
  };
  static bool IsDue(const Known& known, const NodeCondition& condition, Nanos now);

  std::map<std::string, Known> known_;
};

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_CONDITIONS_NODE_CONDITIONS_H_
