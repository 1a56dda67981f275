#include "plan/routes.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace r2cc::plan {
namespace {

uint8_t DistanceOf(const GpuModel& gpu, size_t nic) { return nic < gpu.distances.size() ? gpu.distances[nic] : kDistanceUnknown; }

// The usable NICs nearest to `gpu`, by index.
std::vector<size_t> HomesOf(const GpuModel& gpu, const std::vector<PlannedNic>& nics) {
  std::vector<size_t> homes;
  for (size_t i = 0; i < nics.size(); ++i) {
    if (nics[i].weight_permille == 0) continue;
    if (!homes.empty() && DistanceOf(gpu, i) < DistanceOf(gpu, homes.front())) homes.clear();
    if (homes.empty() || DistanceOf(gpu, i) == DistanceOf(gpu, homes.front())) homes.push_back(i);
  }
  return homes;
}

}  // namespace

std::vector<GpuRoute> MakeRoutes(const std::vector<GpuModel>& gpus, const std::vector<PlannedNic>& nics) {
  std::vector<std::vector<size_t>> homes;
  std::vector<uint32_t> sharers(nics.size(), 0);
  for (const GpuModel& gpu : gpus) {
    homes.push_back(HomesOf(gpu, nics));
    for (const size_t nic : homes.back()) ++sharers[nic];
  }
  std::vector<GpuRoute> routes;
  for (size_t g = 0; g < gpus.size(); ++g) {
    // In millionths, so that a NIC with little weight and many GPUs is not rounded away.
    std::vector<uint32_t> left(nics.size(), 0);
    for (size_t i = 0; i < nics.size(); ++i) left[i] = nics[i].weight_permille * 1000U / (sharers[i] + (sharers[i] == 0 ? 1 : 0));
    uint32_t best = 0;
    for (const size_t nic : homes[g]) best = std::max(best, left[nic]);
    std::vector<size_t> order(nics.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::tuple(nics[a].weight_permille == 0, DistanceOf(gpus[g], a), UINT32_MAX - left[a], nics[a].nic) <
             std::tuple(nics[b].weight_permille == 0, DistanceOf(gpus[g], b), UINT32_MAX - left[b], nics[b].nic);
    });
    GpuRoute route{gpus[g].name, {}};
    for (const size_t i : order) {
      const bool home = std::find(homes[g].begin(), homes[g].end(), i) != homes[g].end();
      const uint32_t weight = home ? std::max(1U, static_cast<uint32_t>(uint64_t{left[i]} * kFullWeightPermille / best)) : 0;
      route.chain.push_back({nics[i].nic, DistanceOf(gpus[g], i), static_cast<uint16_t>(weight)});
    }
    routes.push_back(std::move(route));
  }
  return routes;
}

std::string CheckRoutes(const std::vector<GpuRoute>& routes, const std::vector<GpuModel>& gpus, const std::vector<PlannedNic>& nics) {
  if (routes.size() != gpus.size()) return std::to_string(routes.size()) + " routes for " + std::to_string(gpus.size()) + " GPUs";
  std::map<std::string, uint16_t> weights;
  bool some_carry = false;
  for (const PlannedNic& nic : nics) {
    weights[nic.nic] = nic.weight_permille;
    some_carry |= nic.weight_permille > 0;
  }
  for (const GpuRoute& route : routes) {
    std::set<std::string> seen;
    bool carries = false;
    for (const GpuHop& hop : route.chain) {
      const auto nic = weights.find(hop.nic);
      if (nic == weights.end()) return "GPU " + route.gpu + " goes over NIC " + hop.nic + ", which the plan does not have";
      if (!seen.insert(hop.nic).second) return "GPU " + route.gpu + " has NIC " + hop.nic + " twice";
      if (hop.weight_permille > kFullWeightPermille) return "GPU " + route.gpu + " has more than full weight on NIC " + hop.nic;
      if (hop.weight_permille > 0 && nic->second == 0)
        return "GPU " + route.gpu + " has weight on NIC " + hop.nic + ", which may not carry";
      carries |= hop.weight_permille > 0;
    }
    if (seen.size() != weights.size()) return "GPU " + route.gpu + " leaves out a NIC";
    if (some_carry && !carries) return "GPU " + route.gpu + " has no NIC that carries";
  }
  return "";
}

}  // namespace r2cc::plan
