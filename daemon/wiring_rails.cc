// The part of the wiring that reports this node's rails to people and jobs.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/log.h"
#include "daemon/wiring.h"

namespace r2cc::daemon {

void Wiring::FollowRailAlarms() {
  std::vector<RailAlarm> alarms = probes_.rails.Alarms();
  std::map<std::string, std::set<std::string>> unwatched;
  for (const v1::Job& job : jobs_.registry().Jobs())
    for (const v1::RailTotals& rail : job.rails())
      if (rail.nic().empty()) unwatched[job.job()].insert(rail.rail());
  for (RailAlarm& alarm : UnwatchedRails(unwatched)) alarms.push_back(std::move(alarm));
  if (std::exchange(alarms_.fleet_revision, cluster_.revision()) != cluster_.revision()) alarms_.fleet = health::FindFleetFaults(cluster_);
  for (const health::FleetFault& fault : alarms_.fleet) alarms.push_back({RailAlarm::Kind::kFleet, "", health::FleetText(fault)});
  std::sort(alarms.begin(), alarms.end());
  for (const RailAlarm& alarm : alarms)
    if (!std::binary_search(alarms_.rails.begin(), alarms_.rails.end(), alarm)) LogWarning(alarm.text, {{"node", config_.node}});
  for (const RailAlarm& alarm : alarms_.rails)
    if (!std::binary_search(alarms.begin(), alarms.end(), alarm))
      LogInfo(absl::StrCat("no longer: ", alarm.text), {{"node", config_.node}});
  alarms_.rails = std::move(alarms);
}

// A job takes the unnamed ones anyway; it reports itself if one of them may be there for management.
void Wiring::OfferRails(bool by_default) {
  RailsFile file{world_.netns_inode, {}};
  for (const NicSpec& nic : nics_) {
    if (by_default || file.rails.size() >= kRailsFileRailsMax) break;
    const bool fixed = !nic.address.empty() && !nic.network.has_value();
    file.rails.push_back(fixed ? nic.address : !nic.interface.empty() ? nic.interface : absl::StrFormat("guid:0x%016x", nic.port_guid));
  }
  world_.jobs->OfferRails(file);
}

}  // namespace r2cc::daemon
