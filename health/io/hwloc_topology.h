// The TopologySource over hwloc: this machine's PCI tree and NUMA nodes, or those of an XML file that `lstopo` wrote on another.
#ifndef R2CC_HEALTH_IO_HWLOC_TOPOLOGY_H_
#define R2CC_HEALTH_IO_HWLOC_TOPOLOGY_H_

#include <string>

#include "health/io/topology.h"

namespace r2cc::health {

// GPUs and NICs are known by their PCI class, so that no driver's library is needed: 3D controllers and processing accelerators, display
// controllers of vendors that compute (a server's own VGA chip is none), and network controllers, Ethernet or InfiniBand.
class HwlocTopology final : public TopologySource {
 public:
  // `xml_file`: empty: this machine.
  explicit HwlocTopology(std::string xml_file = "") : xml_file_(std::move(xml_file)) {}

  absl::StatusOr<NodeTopology> Read() const override;

 private:
  const std::string xml_file_;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_IO_HWLOC_TOPOLOGY_H_
