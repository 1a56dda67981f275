#include "plan/simulate/fabric.h"

namespace r2cc::plan {

FabricModel PortFabric(std::span<const double> port_bytes_per_s, double step_latency_s) {
  FabricModel fabric;
  for (const double rate : port_bytes_per_s) fabric.rails_bytes_per_s.push_back({rate});
  fabric.step_latency_s = step_latency_s;
  return fabric;
}

}  // namespace r2cc::plan
