// Finds the ports that a transfer between two members uses on a fabric.
#ifndef R2CC_PLAN_SIMULATE_FABRIC_ROUTES_H_
#define R2CC_PLAN_SIMULATE_FABRIC_ROUTES_H_

#include <cstdint>
#include <vector>

#include "plan/simulate/fabric.h"
#include "plan/simulate/sharing.h"

namespace r2cc::plan {

class FabricRoutes {
 public:
  // A transfer goes over all its routes at once; which of them carries a byte is decided when it is sent.
  struct Route {
    Sharing::Use uses[Sharing::kUsesMax];
    uint32_t count = 0;
  };

  explicit FabricRoutes(FabricModel fabric);

  // Port capacities in bytes a second, by the numbers that routes use.
  std::vector<double> Capacities() const;
  // `change.server` and `change.rail` must exist.
  void Apply(const RailChange& change);
  // Appends the routes of lane `lane` from one member to another; none if no working rails join them. A route without any port has no
  // limit.
  void Find(uint32_t from, uint32_t to, uint32_t lane, std::vector<Route>& routes) const;

  uint32_t ServerOf(uint32_t member) const { return member / fabric_.members_per_server; }
  const FabricModel& fabric() const { return fabric_; }
  // The rate of member `member`'s server each way over all rails.
  double ServerRate(uint32_t member) const;

 private:
  uint32_t Servers() const { return static_cast<uint32_t>(fabric_.rails_bytes_per_s.size()); }
  // Ports: for each server its rails out, its rails in, all rails out, all rails in; then for each member NVLink out, in.
  uint32_t RailPort(uint32_t server, uint32_t rail, bool in) const { return server * (2 * rails_ + 2) + (in ? rails_ : 0) + rail; }
  uint32_t PoolPort(uint32_t server, bool in) const { return server * (2 * rails_ + 2) + 2 * rails_ + in; }
  uint32_t NvlinkPort(uint32_t member, bool in) const { return Servers() * (2 * rails_ + 2) + 2 * member + in; }
  double Rate(uint32_t server, uint32_t rail) const;
  uint32_t HomeRail(uint32_t member) const { return member % fabric_.members_per_server % rails_; }
  bool HasNvlink() const { return fabric_.members_per_server > 1 && fabric_.nvlink_bytes_per_s > 0; }
  double PartAwayFromHome(uint32_t member) const;
  uint32_t FirstWorking(uint32_t from, uint32_t to, uint32_t rail, bool both) const;
  void AddRail(uint32_t from, uint32_t to, uint32_t rail_out, uint32_t rail_in, std::vector<Route>& routes) const;

  FabricModel fabric_;
  uint32_t rails_ = 1;
};

}  // namespace r2cc::plan

#endif  // R2CC_PLAN_SIMULATE_FABRIC_ROUTES_H_
