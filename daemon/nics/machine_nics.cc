#include "daemon/nics/machine_nics.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/log.h"
#include "daemon/config/config_patterns.h"

namespace r2cc::daemon {
namespace {

// Alarms about a NIC begin so among the alarms' names.
constexpr absl::string_view kNicAlarm = "nic ";

}  // namespace

std::vector<health::NicIdentity> IdentitiesOf(const std::vector<NicSpec>& nics, const Addresses::Map& addresses) {
  std::vector<health::NicIdentity> identities;
  for (const NicSpec& nic : nics) {
    health::NicIdentity identity;
    identity.name = nic.name;
    identity.interface = nic.interface;
    identity.address = nic.address;
    identity.port_guid = nic.port_guid;
    identity.rate_bits_per_s = nic.rate_bits_per_s;
    const auto found = addresses.find(nic.interface);
    if (identity.address.empty() && found != addresses.end()) identity.address = ChooseAddress(found->second, "");
    identities.push_back(std::move(identity));
  }
  return identities;
}

std::vector<std::pair<std::string, std::string>> ChangedAddresses(const std::vector<NicSpec>& nics, const health::NodeState& own,
                                                                  const Addresses::Map& addresses) {
  std::vector<std::pair<std::string, std::string>> changed;
  for (const health::NicStatus& nic : own.nics) {
    const auto found = addresses.find(nic.identity.interface);
    const auto spec = std::find_if(nics.begin(), nics.end(), [&](const NicSpec& one) { return one.name == nic.identity.name; });
    // One that is named by its address is that address.
    if (found == addresses.end() || spec == nics.end() || (!spec->address.empty() && !spec->network.has_value())) continue;
    std::vector<std::string> candidates = found->second;
    if (spec->network.has_value()) std::erase_if(candidates, [&](const std::string& one) { return !spec->network->Contains(one); });
    std::string address = ChooseAddress(candidates, nic.identity.address);
    if (address != nic.identity.address) changed.emplace_back(nic.identity.name, std::move(address));
  }
  return changed;
}

std::optional<std::vector<NicSpec>> MissingNics::Look(const std::vector<NicSpec>& nics, const health::NodeState& own,
                                                      const ConfigParts& parts, Nanos now) {
  if (looked_.has_value() && now - *looked_ < kInterval) return std::nullopt;
  looked_ = now;
  const bool all =
      lacking_globs_.empty() && std::all_of(own.nics.begin(), own.nics.end(), [](const health::NicStatus& nic) { return nic.link_up; });
  NicsNow found = all ? NicsNow{nics} : LookForNics(nics, lacking_globs_, parts, addresses_->ByInterface());
  std::erase_if(*alarms_, [&](const auto& entry) {
    return absl::StartsWith(entry.first, kNicAlarm) && !found.alarms.contains(entry.first.substr(kNicAlarm.size()));
  });
  for (const auto& [name, alarm] : found.alarms) {
    std::string& shown = (*alarms_)[absl::StrCat(kNicAlarm, name)];
    if (std::exchange(shown, alarm) != alarm) LogWarning(alarm);
  }
  return found.news ? std::optional(std::move(found.nics)) : std::nullopt;
}

}  // namespace r2cc::daemon
