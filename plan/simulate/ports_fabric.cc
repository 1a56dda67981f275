#include "plan/simulate/ports_fabric.h"

#include <vector>

namespace r2cc::plan {

FabricModel FabricOf(const Ports& ports, ScheduleKind kind) {
  FabricModel fabric = PortFabric(ports.bytes_per_s, ports.step_latency_s);
  fabric.step_overhead_bytes = ports.step_overhead_bytes;
  if (kind != ScheduleKind::kRing || ports.rails == 1) return fabric;
  fabric.use = RailSharing::kPinned;
  for (size_t i = 0; i < ports.bytes_per_s.size(); ++i) {
    std::vector<double>& rails = fabric.rails_bytes_per_s[i];
    const uint32_t lost = ports.rails - RailsLeft(ports, ports.bytes_per_s[i]);
    rails.assign(ports.rails, ports.healthy_bytes_per_s / ports.rails);
    for (uint32_t rail = 0; rail < ports.rails; ++rail)
      if ((rail + 1) * lost / ports.rails > rail * lost / ports.rails) rails[rail] = 0;
  }
  return fabric;
}

}  // namespace r2cc::plan
