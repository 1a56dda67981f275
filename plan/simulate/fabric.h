// Models the network that a schedule runs on: servers with full-duplex rails, a core that never blocks, NVLink inside a server.
#ifndef R2CC_PLAN_SIMULATE_FABRIC_H_
#define R2CC_PLAN_SIMULATE_FABRIC_H_

#include <cstdint>
#include <span>
#include <vector>

namespace r2cc::plan {

enum class RailReach : uint8_t {
  kFull,      // every rail reaches every rail
  kRailOnly,  // rail k reaches only rail k of other servers
};

enum class RailSharing : uint8_t {
  kPooled,  // a transfer's bytes go over all working rails, each taking more as it has room (Balance; PXN inside a server)
  kPinned,  // a transfer stays on one rail, the member's own plus its lane's number; if that is dead, on the next working one
            // (a library that only migrates)
};

struct FabricModel {
  // One entry a server: what each of its rails moves, each way, in bytes a second; 0: dead.
  std::vector<std::vector<double>> rails_bytes_per_s;
  // Member m runs on server m / members_per_server, next to rail m % members_per_server.
  uint32_t members_per_server = 1;
  // Rate of one member over NVLink, each way: transfers inside a server, and those that use a rail next to another member. 0: no limit.
  double nvlink_bytes_per_s = 0;
  RailReach reach = RailReach::kFull;
  RailSharing use = RailSharing::kPooled;
  // From when a step is due until its first byte moves. Lanes wait side by side.
  double step_latency_s = 0;
  // Bytes of its ports that a step takes in addition to its own: the cost of a message where many small ones queue.
  double step_overhead_bytes = 0;

  uint32_t members() const { return static_cast<uint32_t>(rails_bytes_per_s.size()) * members_per_server; }
};

// One member a server, each with one port.
FabricModel PortFabric(std::span<const double> port_bytes_per_s, double step_latency_s = 0);

// At time_s the rail's rate changes: 0 breaks it, its full rate repairs it. Transfers of a broken rail go on over the others.
struct RailChange {
  double time_s = 0;
  uint32_t server = 0;
  uint32_t rail = 0;
  double bytes_per_s = 0;
};

}  // namespace r2cc::plan

#endif  // R2CC_PLAN_SIMULATE_FABRIC_H_
