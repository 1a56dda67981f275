#include "netplugin/link/cross_rail.h"

#include <algorithm>

namespace r2cc::net {

void BackOffTable::Failed(RailPair pair, Nanos now) {
  Trouble& trouble = troubles_[pair];
  trouble.retry_at = now + trouble.back_off.Next();
}

bool BackOffTable::WorthATry(RailPair pair, Nanos now) const {
  const auto it = troubles_.find(pair);
  return it == troubles_.end() || now >= it->second.retry_at;
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
                                           std::span<const RailPair> present, const std::function<bool(RailPair)>& worth_a_try) {
  std::vector<RailPair> chosen;
  for (const uint16_t local : free_local) {
    if (std::any_of(present.begin(), present.end(), [local](const RailPair& pair) { return pair.local == local; })) continue;
    for (const uint16_t remote : free_remote) {
      const auto uses = [remote](const RailPair& pair) { return pair.remote == remote; };
      if (std::any_of(present.begin(), present.end(), uses) || std::any_of(chosen.begin(), chosen.end(), uses)) continue;
      if (!worth_a_try({local, remote})) continue;
      chosen.push_back({local, remote});
      break;
    }
  }
  return chosen;
}

}  // namespace r2cc::net
