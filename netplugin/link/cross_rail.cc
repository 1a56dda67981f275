#include "netplugin/link/cross_rail.h"

#include <algorithm>
#include <utility>

#include "netplugin/flow/tuning.h"

namespace r2cc::net {

void BackOffTable::Failed(RailPair pair, Nanos now) {
  Trouble& trouble = troubles_[pair];
  trouble.failed_at = now;
  trouble.retry.Failed(now);
}

std::optional<Nanos> BackOffTable::Turn(RailPair pair, bool last_way, Nanos now) const {
  const auto it = troubles_.find(pair);
  if (it == troubles_.end()) return 0;
  const Trouble& trouble = it->second;
  if (now < (last_way ? std::min(trouble.retry.due(), trouble.failed_at + tuning::kRetryWaitMost) : trouble.retry.due()))
    return std::nullopt;
  return last_way ? trouble.failed_at : 0;
}

FreeRails RailsForCrossRail(std::span<const HomeState> homes, const std::vector<bool>& local_works, const std::vector<bool>& remote_works) {
  FreeRails free;
  if (std::none_of(homes.begin(), homes.end(), [](const HomeState& home) { return home.lost; })) return free;
  std::vector<bool> local_free = local_works, remote_free = remote_works;
  for (const HomeState& home : homes)
    if (!home.lost) local_free[home.rails.local] = remote_free[home.rails.remote] = false;
  for (size_t i = 0; i < local_free.size(); ++i)
    if (local_free[i]) free.local.push_back(static_cast<uint16_t>(i));
  for (size_t i = 0; i < remote_free.size(); ++i)
    if (remote_free[i]) free.remote.push_back(static_cast<uint16_t>(i));
  return free;
}

bool IsRetired(RailPair pair, std::span<const HomeState> homes) {
  const auto any = [&](auto uses) { return std::any_of(homes.begin(), homes.end(), uses); };
  return any([&](const HomeState& home) { return home.up && home.rails.local == pair.local; }) &&
         any([&](const HomeState& home) { return home.up && home.rails.remote == pair.remote; });
}

std::vector<RailPair> ChooseCrossRailLinks(std::span<const uint16_t> free_local, std::span<const uint16_t> free_remote,
                                           std::span<const RailPair> present, const std::function<std::optional<Nanos>(RailPair)>& turn) {
  std::vector<RailPair> chosen;
  for (const uint16_t local : free_local) {
    if (std::any_of(present.begin(), present.end(), [local](const RailPair& pair) { return pair.local == local; })) continue;
    std::optional<std::pair<Nanos, uint16_t>> first;
    for (const uint16_t remote : free_remote) {
      const auto uses = [remote](const RailPair& pair) { return pair.remote == remote; };
      if (std::any_of(present.begin(), present.end(), uses) || std::any_of(chosen.begin(), chosen.end(), uses)) continue;
      const std::optional<Nanos> when = turn({local, remote});
      if (when && (!first || *when < first->first)) first = {*when, remote};
    }
    if (first) chosen.push_back({local, first->second});
  }
  return chosen;
}

}  // namespace r2cc::net
