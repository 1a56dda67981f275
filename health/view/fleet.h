// Faults that many nodes have in common: what a leaf switch or a rack does, as it shows in the view of the cluster. Pure.
#ifndef R2CC_HEALTH_VIEW_FLEET_H_
#define R2CC_HEALTH_VIEW_FLEET_H_

#include <cstddef>
#include <string>
#include <vector>

#include "health/view/cluster_view.h"

namespace r2cc::health {

// Fewer are a coincidence.
constexpr size_t kFleetNodesMin = 3;
// At most this many are returned; a larger failure has few causes.
constexpr size_t kFleetFaultsMax = 8;

// One NIC name is bad on most nodes of a part of the cluster; or all NICs of these nodes are.
struct FleetFault {
  std::string nic;    // empty: all of them
  std::string where;  // "rack3", "n032 to n063", "all nodes"
  size_t bad = 0;
  size_t nodes = 0;  // of that part, with such a NIC
  friend auto operator<=>(const FleetFault&, const FleetFault&) = default;
};

// A NIC is bad if its node's daemon reports FAILED or DEGRADED, and neither a drill nor an operator is the reason. Reports of an
// unreachable node do not count. A part is all nodes; else the nodes whose names begin with the same text ("rack3-07", "rack3-08"); else
// nodes whose names follow each other. Most are more than half, and three quarters of nodes that only follow each other. A node whose NICs
// are all bad counts for none of them: it, or its rack, has another fault. The largest first, kFleetFaultsMax at most.
std::vector<FleetFault> FindFleetFaults(const ClusterView& view);

// "rail1 is bad on 30 of 32 nodes of rack3: look at its leaf switch there"
std::string FleetText(const FleetFault& fault);

// The text with which the names of a rack's nodes begin: "rack3" of "rack3-07.example.com"; empty: the name shows no rack.
std::string RackOf(const std::string& node);

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_VIEW_FLEET_H_
