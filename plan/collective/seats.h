// Decides whether an AllReduce should leave NCCL's ring for NCCL's double binary tree, and in which order of nodes. A pure function.
//
// D is the vector, B what a node without a fault moves each way, both 1 here; times are in D/B. Each of the tree's two halves carries D/2.
// In a half, a node with c children and a parent moves (c + 1) D/2 each way. So the first and the last node of an even number move D, all
// others 2D; of an odd number the second node moves D, the first and the last 1.5 D. These positions are the free seats: a node there that
// keeps half of its bandwidth is done as soon as the others. NCCL numbers nodes in the order of ranks, so an order of ranks gives seats.
#ifndef R2CC_PLAN_COLLECTIVE_SEATS_H_
#define R2CC_PLAN_COLLECTIVE_SEATS_H_

#include <cstdint>
#include <span>
#include <vector>

namespace r2cc::plan {

// The tree must be faster than what NCCL uses by this part: a switch costs some hundred milliseconds and other sums of floats.
constexpr double kSeatGain = 0.03;
// Time of NCCL's tree relative to its fluid time, if the ring takes its own: 1.05 with four nodes and 1.06 with eight, four rails of 2
// Gbit/s each, 256 MiB. Reduction and broadcast share each proxy thread.
constexpr double kTreePrice = 1.05;
// The part of the fill that shows when calls follow one another, as a program's do: 0.54 with four nodes, 0.92 with eight.
constexpr double kFillSeen = 0.75;
// NCCL's tree with the Simple protocol sends pieces of this size: one of eight slots of a buffer of 4 MiB.
constexpr uint64_t kTreeChunkBytes = 512 << 10;
constexpr uint32_t kSeatNodesMax = 4096;

struct SeatNodes {
  std::vector<uint32_t> kept_permille;  // each node's bandwidth, in the order of the communicator's ranks; at most 1000
  uint32_t ranks = 0;                   // of all nodes together; the ring is flat over them
  uint32_t channels = 1;                // of the tree; each carries an equal part of the vector
};

// The load of each position each way, relative to D. At least one node.
std::vector<double> TreeLoads(uint32_t nodes);
// A position that moves least.
uint32_t FirstSeat(uint32_t nodes);
// Hops from the farthest node to the root and back.
uint32_t TreeHops(uint32_t nodes);
// How much longer the tree takes for `bytes` because a chunk needs TreeHops() to pass: at least 1. A channel of m chunks takes
// 1 + hops/m.
double TreeFill(uint64_t bytes, uint32_t nodes, uint32_t channels);

// The ring through all ranks: each node moves 2 (ranks - 1)/ranks D, and the slowest sets the pace.
double FlatRingTime(const SeatNodes& nodes);
// The time of NCCL's own choice, which does not know about losses: the ring, or the tree in the order of ranks if that is faster among
// sound nodes. That is so for two or three nodes of several GPUs. The tree has its price.
double UsualTime(const SeatNodes& nodes);
// The tree with order[position] = node, without its fill.
double TreeTime(const SeatNodes& nodes, std::span<const uint32_t> order);
// The order whose TreeTime() is least: the less a node keeps, the less its position moves. Sound nodes stay in their order.
std::vector<uint32_t> SeatOrder(const SeatNodes& nodes);

// A part of the vector by the ring at the same time, with shares of each port by load: the best part, and the time.
struct RingNextToTree {
  double ring_part = 0;
  double time = 0;
};
RingNextToTree MixWithRing(const SeatNodes& nodes, std::span<const uint32_t> order);

struct SeatDecision {
  std::vector<uint32_t> order;  // order[position] = node; empty: NCCL's own choice stays
  uint64_t bytes_min = 0;       // the gain begins here, because of the fill
  double over_usual = 1;        // of a vector without end, with kTreePrice
  friend bool operator==(const SeatDecision&, const SeatDecision&) = default;
};

// `current`: the order in use; empty: none. It stays while no other is better by kSeatGain, and as long as its gain is a third of that.
SeatDecision DecideSeats(const SeatNodes& nodes, std::span<const uint32_t> current = {});

}  // namespace r2cc::plan

#endif  // R2CC_PLAN_COLLECTIVE_SEATS_H_
