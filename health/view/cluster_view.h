// Holds the states of all nodes, each as its own daemon last sent it. Pure: time is an argument. One thread at a time.
#ifndef R2CC_HEALTH_VIEW_CLUSTER_VIEW_H_
#define R2CC_HEALTH_VIEW_CLUSTER_VIEW_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "health/evidence/evidence.h"
#include "health/view/node_state.h"

namespace r2cc::health {

// A node is unreachable if nothing came from it for this time: several times the interval of the keep-alives.
constexpr Nanos kNodeLease = 5 * kNanosPerSecond;

struct NodeEntry {
  NodeState state;          // state.status is the node's own; ClusterView::StatusOf has the one to show
  Nanos last_received = 0;  // when anything last came from it
  bool reachable = true;
  uint64_t revision = 0;  // the view's, when a verdict or a place of this node changed last
  uint64_t changes = 0;   // the same, for any change
};

class ClusterView {
 public:
  explicit ClusterView(std::string own_node, Nanos lease = kNodeLease) : own_node_(std::move(own_node)), lease_(lease) {}

  enum class Merged {
    kNew,       // the view changed
    kSame,      // the epoch that is known already: a sign of life
    kOutdated,  // an older epoch of the same run, overtaken on its way; ignored
    kOwn,       // about this node, from elsewhere; ignored: nobody knows better
  };
  // A node's state came in at `now`, over any way. Within one run of its daemon an older epoch never replaces a later one. A state of
  // another run replaces the known one: incarnations.h has decided before which run is believed. If the result is kNew, `before` (unless
  // null) is set to the state that was known until then: nothing, if the node is new.
  Merged Merge(NodeState state, Nanos now, std::optional<NodeState>* before = nullptr);

  // This node's own state.
  void SetOwn(NodeState state, Nanos now);

  // The daemon of `node` gave a sign of life. True if it was unreachable until now.
  bool NoteAlive(const std::string& node, Nanos now);

  // Marks the nodes unreachable whose lease ran out; returns them. Their NICs' verdicts stay: an unreachable daemon is not a dead NIC.
  // `is_alive` is called for each of them first: true is a sign of life.
  std::vector<std::string> Tick(Nanos now, const std::function<bool(const std::string& node)>& is_alive = nullptr);

  // Nothing is known of `node` any more. REQUIRES: it is another one than the own.
  void Forget(const std::string& node);
  // The unreachable nodes from which nothing came since `when`, the longest silent one first.
  std::vector<std::string> SilentSince(Nanos when) const;

  const std::map<std::string, NodeEntry>& nodes() const { return nodes_; }
  const NodeEntry* Find(const std::string& node) const;
  const NicStatus* Find(const NicKey& nic) const;
  // The status to show for a node: its own, or kUnreachable.
  NodeStatus StatusOf(const NodeEntry& entry) const;
  // Grows with each change of a verdict on a NIC or a path, a weight, a node's reachability or where it takes probes.
  uint64_t revision() const { return revision_; }
  // Grows with each change of where a node takes probes, and which NICs it has.
  uint64_t places() const { return places_; }
  // Grows with each node that is forgotten.
  uint64_t forgotten() const { return forgotten_; }
  // Grows with each change; a sign of life is no change.
  uint64_t changes() const { return changes_; }

 private:
  // Swaps them.
  void Set(NodeEntry* entry, NodeState* state, bool fresh);
  void Note(NodeEntry* entry, bool verdict);

  const std::string own_node_;
  const Nanos lease_;
  std::map<std::string, NodeEntry> nodes_;
  Nanos lease_due_ = 0;  // no lease runs out before
  uint64_t revision_ = 1;
  uint64_t places_ = 1;
  uint64_t changes_ = 1;
  uint64_t forgotten_ = 0;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_VIEW_CLUSTER_VIEW_H_
