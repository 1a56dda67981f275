// Decides by which way an AllReduce goes while nodes have lost bandwidth: NCCL's own choice, NCCL's tree in another order of nodes (a
// seat), or R2CC's CollNet. A pure function; times are in D/B, as in seats.h.
#ifndef R2CC_PLAN_COLLECTIVE_WAYS_H_
#define R2CC_PLAN_COLLECTIVE_WAYS_H_

#include <cstdint>
#include <vector>

#include "plan/collective/seats.h"

namespace r2cc::plan {

// Time of CollNet relative to the lower bound if the rails are the limit: 1.06 to 1.12 with four nodes, 2 Gbit/s rails and 256 MiB.
constexpr double kCollNetPrice = 1.1;
// Bytes that one process adds up and moves each way: 27 Gbit/s were measured with 31 to 40 % of 16 processors busy.
constexpr double kCollNetBytesPerS = 27e9 / 8;
// With one of four rails lost CollNet took 1.03 of the ring's time at 16 MiB and 0.95 at 64 MiB.
constexpr uint64_t kCollNetBytesMin = 64 << 20;

enum class Way : uint8_t { kUsual, kTree, kCollNet };

// The capacity that a communicator has for CollNet.
struct CollNetOffer {
  bool is_there = false;        // on all ranks
  double node_bytes_per_s = 0;  // of a node without a loss, each way; 0: not known
  uint64_t bytes_min = 0;       // the user's R2CC_COLLNET_MIN_BYTES, who then answers for the processors; 0: not set
};

struct WayDecision {
  Way way = Way::kUsual;
  std::vector<uint32_t> order;  // order[position] = node; CollNet's is that of the ranks. Empty: kUsual
  uint64_t bytes_min = 0;       // smaller ones stay with NCCL's own choice
  double over_usual = 1;        // of a vector without end
  friend bool operator==(const WayDecision&, const WayDecision&) = default;
};

// `current`: the way in use. It stays while no other is better by kSeatGain, and as long as its gain is a third of that.
WayDecision DecideWay(const SeatNodes& nodes, const CollNetOffer& collnet, const WayDecision& current = {});

}  // namespace r2cc::plan

#endif  // R2CC_PLAN_COLLECTIVE_WAYS_H_
