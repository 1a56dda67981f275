// Which of its home links a session opens. In a process with few peers all, at once. In one with many a link costs memory and a connection
// that most peers never use: there those alone at which a flow is at home, until the session needs the others too. Pure.
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

  // For good: there is a message for several links.
  void WantAll() { all_ = true; }
  // `homes`: of the home links, by number. The others are needed where a flow is at home on a link that is lost, or failed by the health
  // page's word, wants the chunks of all on all links, or has a buffer that no link which is up reaches.
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
