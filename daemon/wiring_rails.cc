// The part of the wiring that tells people of this node's rails.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "daemon/wiring.h"

namespace r2cc::daemon {

void Wiring::FollowRailAlarms() {
  std::vector<RailAlarm> alarms = rails_.Alarms();
  std::map<std::string, std::set<std::string>> unwatched;
  for (const v1::Job& job : jobs_.registry().Jobs())
    for (const v1::RailTotals& rail : job.rails())
      if (rail.nic().empty()) unwatched[job.job()].insert(rail.rail());
  for (RailAlarm& alarm : UnwatchedRails(unwatched)) alarms.push_back(std::move(alarm));
  std::sort(alarms.begin(), alarms.end());
  for (const RailAlarm& alarm : alarms)
    if (!std::binary_search(rail_alarms_.begin(), rail_alarms_.end(), alarm)) LogWarning(alarm.text, {{"node", config_.node}});
  for (const RailAlarm& alarm : rail_alarms_)
    if (!std::binary_search(alarms.begin(), alarms.end(), alarm))
      LogInfo(absl::StrCat("no longer: ", alarm.text), {{"node", config_.node}});
  rail_alarms_ = std::move(alarms);
}

}  // namespace r2cc::daemon
