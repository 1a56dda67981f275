// Decides which home links a session opens. A process with few peers opens all at once. With many peers, a link costs memory and a
// connection that most peers never use: then the session opens only links that are some flow's home, until it needs the others too. Pure.
#ifndef R2CC_NETPLUGIN_LINK_LINK_DEMAND_H_
#define R2CC_NETPLUGIN_LINK_LINK_DEMAND_H_

#include <algorithm>
#include <span>

#include "netplugin/flow/send_flows.h"
#include "netplugin/link/cross_rail.h"
#include "netplugin/link/session_rails.h"

namespace r2cc::net {

class LinkDemand {
 public:
  explicit LinkDemand(bool all) : all_(all) {}

  // From now on all links are wanted: a message needs several.
  void WantAll() { all_ = true; }
  // `homes`: the home links, by number. All links are needed if a flow's home link is lost or failed by the health page, if a flow wants
  // its chunks on all links, or if no link that is up reaches a flow's buffer.
  void Judge(const SendFlows& flows, std::span<const HomeState> homes, const SessionRails& rails) {
    all_ = all_ || flows.wants_all_links() || flows.any_stranded();
    for (LinkId link = 0; link < homes.size() && !all_; ++link)
      all_ = Wants(flows, link) && (homes[link].lost || rails.Failed(homes[link].rails));
  }

  bool all() const { return all_; }
  bool Wants(const SendFlows& flows, LinkId link) const {
    const auto at_home = [link](const auto& entry) { return entry.second.home == link; };
    return all_ || std::any_of(flows.all().begin(), flows.all().end(), at_home);
  }

 private:
  bool all_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_LINK_DEMAND_H_
