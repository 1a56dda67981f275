// Decides by which way an AllReduce goes while nodes have lost bandwidth: NCCL's own choice, NCCL's tree in another order of nodes (a
// seat), or R2CC's CollNet. A pure function; times are in D/B, as in seats.h.
#ifndef R2CC_PLAN_COLLECTIVE_WAYS_H_
#define R2CC_PLAN_COLLECTIVE_WAYS_H_

#include <cstdint>
#include <vector>

#include "plan/collective/seats.h"

namespace r2cc::plan {

// Time of CollNet relative to the lower bound if the rails are the limit, and its fill: each vector costs as much as if it were longer by
// this many bytes. Both were fitted to two runs with four nodes, 2 Gbit/s rails and one of four lost. At 16, 64 and 256 MiB CollNet took
// 1.03, 0.95, 0.90 and 1.08, 0.98, 0.92 of the ring's time. These values give 1.11, 0.95, 0.91.
constexpr double kCollNetPrice = 1.12;
constexpr double kCollNetFillBytes = 7 << 20;
// Bytes that one process adds up and moves each way: 27 Gbit/s were measured with 31 to 40 % of 16 processors busy.
constexpr double kCollNetBytesPerS = 27e9 / 8;

enum class Way : uint8_t { kUsual, kTree, kCollNet };

// The capacity that a communicator has for CollNet.
struct CollNetOffer {
  bool is_there = false;        // on all ranks
  double node_bytes_per_s = 0;  // of a node without a loss, each way; 0: not known
  uint64_t bytes_min = 0;       // the user's R2CC_COLLNET_MIN_BYTES: no smaller ones, and the processors are no limit; 0: not set
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
