// Decides which AllReduces use CollNet or NCCL's tree. NCCL's estimates do not know that the plugin plans its own AllReduce for the rails
// that are left. There are two modes:
//
// - Without R2CC_SEAT=1 an AllReduce takes CollNet from R2CC_COLLNET_MIN_BYTES on, wherever NCCL has it on and allows it.
// - With R2CC_SEAT=1 libr2cc-nccl.so makes communicators whose AllReduces take the tree, and names the AllReduces that take CollNet. All
//   others take no CollNet unless NCCL has nothing else.
//
// Everything else, and everything where CollNet is off, is NCCL's own choice, to the bit.
//
// All ranks of a communicator have to choose the same: they exchange nothing, and ranks that differ hang. So an answer depends only on the
// arguments and the environment, never on what a rank has measured or received. It does not compare estimates either: ranks on different
// processors may have different ones.
//
// The least size is the crossover with NCCL's ring, which has to be measured. Until then there is no default, and an unset value is no
// opinion.
#ifndef R2CC_NETPLUGIN_TUNER_POLICY_H_
#define R2CC_NETPLUGIN_TUNER_POLICY_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "netplugin/abi/nccl_types.h"
#include "netplugin/abi/seat_v2.h"

namespace r2cc::tuner {

// Constant for the life of a communicator, except `way`.
struct Communicator {
  size_t ranks = 0;
  size_t nodes = 0;
  std::optional<uint64_t> collnet_min_bytes;  // R2CC_COLLNET_MIN_BYTES, the same on all ranks
  bool pinned = false;                        // the user has set NCCL_ALGO or NCCL_PROTO
  bool agreed = false;                        // R2CC_SEAT=1, the same on all ranks
  abi::SeatWay way = abi::SeatWay::kUsual;    // libr2cc-nccl.so sets another one, on all ranks for the same calls
};

// float[algorithms][protocols] in microseconds, as NCCL passes it. Entries below 0 may not be chosen.
struct CostTable {
  float* cost = nullptr;
  int algorithms = 0;
  int protocols = 0;
};

// For tables of v3 and later: makes CollNet, or NVLSTree and otherwise Tree, the cheapest way, or makes CollNet the last choice, or changes
// nothing. An algorithm that the user has excluded has an entry that may not be chosen. An invalid table (null, no rows, too many rows) is
// not changed.
void Tune(const Communicator& communicator, abi::Function function, size_t bytes, const CostTable& table);

// NCCL has CollNet on for this operation.
bool OffersCollNet(const CostTable& table);

struct Choice {
  abi::Algorithm algorithm;
  abi::Protocol protocol;
};

// For the table of v2, which has no costs. It cannot see what the user has excluded: no choice if anything is pinned.
std::optional<Choice> Choose(const Communicator& communicator, abi::Function function, size_t bytes, bool collnet_support);

}  // namespace r2cc::tuner

#endif  // R2CC_NETPLUGIN_TUNER_POLICY_H_
