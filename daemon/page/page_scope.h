// Chooses the nodes that are on the page if it has no room for all. Pure.
#ifndef R2CC_DAEMON_PAGE_PAGE_SCOPE_H_
#define R2CC_DAEMON_PAGE_PAGE_SCOPE_H_

#include <cstddef>
#include <set>
#include <string>

#include "daemon/core/job_peers.h"
#include "health/view/cluster_view.h"
#include "plan/model.h"
#include "plan/page/page.h"

namespace r2cc::daemon {

// NICs of a page, which also has room for all broken paths and drains for single jobs.
constexpr size_t kPageNicsMax = plan::kPageEntriesMax - plan::kBrokenPathsMax - plan::kJobDrainsMax;

struct PageScope {
  bool all = true;
  std::set<std::string> nodes;  // unless `all`
  size_t left_out = 0;          // nodes
  size_t left_out_of_jobs = 0;  // of these, that jobs here talk to

  bool Holds(const std::string& node) const { return all || nodes.contains(node); }
  friend bool operator==(const PageScope&, const PageScope&) = default;
};

// All nodes, if they have at most `nics_max` NICs. Otherwise the own one with all its NICs, then those that jobs here communicate with,
// users in turn, then the others by name, as long as there is room.
PageScope ChooseScope(const health::ClusterView& view, const std::string& own_node, const JobPeers& job_peers,
                      size_t nics_max = kPageNicsMax);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_PAGE_PAGE_SCOPE_H_
