#include "base/core/nic_choice.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace r2cc {
namespace {

// NICs slower than the fastest one by more than this are there for management.
constexpr int kManagementSpeedRatio = 10;

// Interfaces of containers and virtual machines that this node hosts: their addresses mean nothing to another node, and several are
// the same on every node (172.17.0.1).
constexpr std::string_view kHostedPrefixes[] = {"docker", "br-", "virbr", "cni", "flannel", "cali", "vxlan", "veth", "podman", "lxc"};
constexpr int kRanks = 3;

bool IsHosted(const NicCandidate& candidate) {
  return candidate.bridge || std::any_of(std::begin(kHostedPrefixes), std::end(kHostedPrefixes),
                                         [&](std::string_view prefix) { return candidate.name.rfind(prefix, 0) == 0; });
}

}  // namespace

int NicRank(const NicCandidate& candidate) {
  if (candidate.loopback || !candidate.has_address) return -1;
  return IsHosted(candidate) ? 2 : candidate.has_device ? 0 : 1;
}

std::vector<size_t> ChooseNics(const std::vector<NicCandidate>& candidates) {
  std::vector<size_t> chosen;
  for (int rank = 0; rank < kRanks && chosen.empty(); ++rank)
    for (size_t i = 0; i < candidates.size(); ++i)
      if (NicRank(candidates[i]) == rank) chosen.push_back(i);
  int fastest = 0;
  for (const size_t i : chosen) fastest = std::max(fastest, candidates[i].speed_mbps);
  std::erase_if(chosen,
                [&](size_t i) { return candidates[i].speed_mbps > 0 && candidates[i].speed_mbps < fastest / kManagementSpeedRatio; });
  return chosen;
}

}  // namespace r2cc
