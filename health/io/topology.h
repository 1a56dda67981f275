// The seam to the machine's inner topology: which GPU is how far from which NIC. Real: hwloc_topology.h; fake: a test's own values.
#ifndef R2CC_HEALTH_IO_TOPOLOGY_H_
#define R2CC_HEALTH_IO_TOPOLOGY_H_

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace r2cc::health {

// The distance between two PCI devices: the lower, the nearer. NCCL's names of the same steps are in the comments.
enum class PcieDistance : uint8_t {
  kSameDevice,      // functions of one card
  kSameSwitch,      // PIX: below one PCIe switch
  kSameSwitches,    // PXB: below several, and no CPU between them
  kSameHostBridge,  // PHB: through one host bridge
  kSameNuma,        // NODE: through the interconnect of one NUMA node
  kSameMachine,     // SYS: across NUMA nodes, or not known
};

// "same-switch"
const char* PcieDistanceName(PcieDistance distance);

struct PciDevice {
  std::string pci;     // "0000:18:00.0"
  int numa_node = -1;  // the kernel's number; -1: not bound to one, or not known

  friend bool operator==(const PciDevice&, const PciDevice&) = default;
};

// The devices that are present at one time. Plain values.
struct NodeTopology {
  // In the order of their PCI addresses, which is CUDA's order under CUDA_DEVICE_ORDER=PCI_BUS_ID.
  std::vector<PciDevice> gpus;
  std::vector<PciDevice> nics;
  std::vector<std::vector<PcieDistance>> gpu_to_nic;  // [gpu][nic]
  std::vector<std::vector<PcieDistance>> nic_to_nic;  // [nic][nic]; symmetric

  friend bool operator==(const NodeTopology&, const NodeTopology&) = default;
};

class TopologySource {
 public:
  virtual ~TopologySource() = default;

  // Reads all of it; may take a second on a large machine. Any thread, one at a time.
  virtual absl::StatusOr<NodeTopology> Read() const = 0;
};

// Returns what a test gave it.
class FakeTopology final : public TopologySource {
 public:
  explicit FakeTopology(absl::StatusOr<NodeTopology> topology = NodeTopology()) : topology_(std::move(topology)) {}
  absl::StatusOr<NodeTopology> Read() const override { return topology_; }

 private:
  const absl::StatusOr<NodeTopology> topology_;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_IO_TOPOLOGY_H_
