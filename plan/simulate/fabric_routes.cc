#include "plan/simulate/fabric_routes.h"

#include <algorithm>
#include <utility>

#include "base/core/check.h"

namespace r2cc::plan {

FabricRoutes::FabricRoutes(FabricModel fabric) : fabric_(std::move(fabric)) {
  R2CC_CHECK(fabric_.members_per_server >= 1);
  for (const std::vector<double>& rails : fabric_.rails_bytes_per_s) rails_ = std::max(rails_, static_cast<uint32_t>(rails.size()));
}

double FabricRoutes::Rate(uint32_t server, uint32_t rail) const {
  const std::vector<double>& rails = fabric_.rails_bytes_per_s[server];
  return rail < rails.size() ? rails[rail] : 0;
}

double FabricRoutes::ServerRate(uint32_t member) const {
  double sum = 0;
  for (const double rate : fabric_.rails_bytes_per_s[ServerOf(member)]) sum += rate;
  return sum;
}

std::vector<double> FabricRoutes::Capacities() const {
  std::vector<double> capacities(Servers() * (2 * rails_ + 2) + 2 * fabric_.members(), fabric_.nvlink_bytes_per_s);
  for (uint32_t server = 0; server < Servers(); ++server) {
    for (const bool in : {false, true}) {
      for (uint32_t rail = 0; rail < rails_; ++rail) capacities[RailPort(server, rail, in)] = Rate(server, rail);
      capacities[PoolPort(server, in)] = ServerRate(server * fabric_.members_per_server);
    }
  }
  return capacities;
}

void FabricRoutes::Apply(const RailChange& change) { fabric_.rails_bytes_per_s[change.server][change.rail] = change.bytes_per_s; }

// The part of a member's bytes that goes over NVLink to and from rails next to other members, if all rails share them.
double FabricRoutes::PartAwayFromHome(uint32_t member) const { return 1 - Rate(ServerOf(member), HomeRail(member)) / ServerRate(member); }

// From `rail` on, the first that works at `from` (at both, if `both`); rails_ if there is none.
uint32_t FabricRoutes::FirstWorking(uint32_t from, uint32_t to, uint32_t rail, bool both) const {
  for (uint32_t i = 0; i < rails_; ++i) {
    const uint32_t candidate = (rail + i) % rails_;
    if (Rate(from, candidate) > 0 && (!both || Rate(to, candidate) > 0)) return candidate;
  }
  return rails_;
}

void FabricRoutes::AddRail(uint32_t from, uint32_t to, uint32_t rail_out, uint32_t rail_in, std::vector<Route>& routes) const {
  Route& route = routes.emplace_back();
  route.uses[route.count++] = {RailPort(ServerOf(from), rail_out, false), 1};
  route.uses[route.count++] = {RailPort(ServerOf(to), rail_in, true), 1};
  if (!HasNvlink()) return;
  if (rail_out != HomeRail(from)) route.uses[route.count++] = {NvlinkPort(from, false), 1};
  if (rail_in != HomeRail(to)) route.uses[route.count++] = {NvlinkPort(to, true), 1};
}

void FabricRoutes::Find(uint32_t from, uint32_t to, uint32_t lane, std::vector<Route>& routes) const {
  const uint32_t here = ServerOf(from);
  const uint32_t there = ServerOf(to);
  if (here == there) {
    Route& route = routes.emplace_back();
    if (!HasNvlink()) return;
    route.uses[route.count++] = {NvlinkPort(from, false), 1};
    route.uses[route.count++] = {NvlinkPort(to, true), 1};
    return;
  }
  if (fabric_.use == RailSharing::kPinned) {
    const bool same = fabric_.reach == RailReach::kRailOnly;
    const uint32_t wanted = (HomeRail(from) + lane) % rails_;
    const uint32_t out = FirstWorking(here, there, wanted, same);
    const uint32_t in = same ? out : FirstWorking(there, here, wanted, false);
    if (out < rails_ && in < rails_) AddRail(from, to, out, in, routes);
    return;
  }
  if (fabric_.reach == RailReach::kRailOnly) {
    for (uint32_t rail = 0; rail < rails_; ++rail)
      if (Rate(here, rail) > 0 && Rate(there, rail) > 0) AddRail(from, to, rail, rail, routes);
    return;
  }
  if (ServerRate(from) <= 0 || ServerRate(to) <= 0) return;
  Route& route = routes.emplace_back();
  route.uses[route.count++] = {PoolPort(here, false), 1};
  route.uses[route.count++] = {PoolPort(there, true), 1};
  if (!HasNvlink()) return;
  if (const double part = PartAwayFromHome(from); part > 0) route.uses[route.count++] = {NvlinkPort(from, false), part};
  if (const double part = PartAwayFromHome(to); part > 0) route.uses[route.count++] = {NvlinkPort(to, true), part};
}

}  // namespace r2cc::plan
