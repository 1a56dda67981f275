#include "netplugin/link/detour.h"

#include <algorithm>

namespace r2cc::net {

void PairBook::Failed(RailPair pair, Nanos now) {
  Trouble& trouble = troubles_[pair];
  trouble.back_off = std::clamp(trouble.back_off * 2, kBackOffLeast, kBackOffMost);
  trouble.retry_at = now + trouble.back_off;
}

bool PairBook::WorthATry(RailPair pair, Nanos now) const {
  const auto it = troubles_.find(pair);
  return it == troubles_.end() || now >= it->second.retry_at;
}

std::vector<RailPair> ChooseDetours(std::span<const uint16_t> free_local, std::span<const uint16_t> free_remote,
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
