// Chooses the NICs of each GPU's traffic, and where it goes next: a pure function of a node's plan and the machine's topology.
//
// A GPU's home is the usable NICs that are nearest to it by PCIe. A NIC that is home to several GPUs is shared by them, so a GPU's weight
// on it is the NIC's own weight, which follows its capacity, divided by their number. The failover chain is all NICs, nearest first, and
// of equally near ones the one with the most left; NICs that may not carry traffic are at its end.
#ifndef R2CC_PLAN_ROUTES_H_
#define R2CC_PLAN_ROUTES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "plan/model.h"

namespace r2cc::plan {

// How far a NIC is from a GPU: 0 is nearest. An unknown distance is kDistanceUnknown.
constexpr uint8_t kDistanceUnknown = 255;

struct GpuModel {
  std::string name;                // its PCI address
  std::vector<uint8_t> distances;  // to each NIC of the plan, in its order; missing ones are not known
};

struct GpuHop {
  std::string nic;
  uint8_t distance = kDistanceUnknown;
  // Share of this GPU's traffic, relative to its best home; 0: the NIC is no home of it, or may not carry traffic.
  uint16_t weight_permille = 0;

  friend bool operator==(const GpuHop&, const GpuHop&) = default;
};

struct GpuRoute {
  std::string gpu;
  std::vector<GpuHop> chain;

  friend bool operator==(const GpuRoute&, const GpuRoute&) = default;
};

// `nics`: the plan's entries for one node's NICs.
std::vector<GpuRoute> MakeRoutes(const std::vector<GpuModel>& gpus, const std::vector<PlannedNic>& nics);

// Empty if `routes` are what they must be: a chain per GPU, each NIC in it once, no weight on a NIC that may not carry traffic, and some
// weight wherever any NIC may. Otherwise one line.
std::string CheckRoutes(const std::vector<GpuRoute>& routes, const std::vector<GpuModel>& gpus, const std::vector<PlannedNic>& nics);

}  // namespace r2cc::plan

#endif  // R2CC_PLAN_ROUTES_H_
