// Which AllReduces go by CollNet or by NCCL's tree. NCCL's estimates do not know that the plugin's own AllReduce is planned for the rails
// that are left. There are two modes:
//
// - Without R2CC_SEAT=1 an AllReduce takes CollNet from R2CC_COLLNET_MIN_BYTES on, wherever NCCL has it on and allows it.
// - With R2CC_SEAT=1 libr2cc-nccl.so makes communicators whose AllReduces take the tree, and names the AllReduces that take CollNet. All
//   others take no CollNet unless NCCL has nothing else.
//
// Everything else, and everything where CollNet is off, is NCCL's own choice, to the bit.
//
// All ranks of a communicator have to choose alike: nothing is exchanged, and ranks that differ hang. So an answer depends on the arguments
// and the environment alone, never on what a rank has measured or heard. It does not compare estimates either: those of ranks on different
// processors may differ.
//
// The least size is the crossover with NCCL's ring, which has to be measured. Until then there is no default, and unset is no opinion.
#ifndef R2CC_NETPLUGIN_TUNER_POLICY_H_
#define R2CC_NETPLUGIN_TUNER_POLICY_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "netplugin/abi/nccl_types.h"
#include "netplugin/abi/seat_v2.h"

namespace r2cc::tuner {

// What holds for all of a communicator's life, but for `way`.
struct Communicator {
  size_t ranks = 0;
  size_t nodes = 0;
  std::optional<uint64_t> collnet_min_bytes;  // R2CC_COLLNET_MIN_BYTES, the same on all ranks
  bool pinned = false;                        // the user has set NCCL_ALGO or NCCL_PROTO
  bool agreed = false;                        // R2CC_SEAT=1, the same on all ranks
  abi::SeatWay way = abi::SeatWay::kUsual;    // another one: by libr2cc-nccl.so, on all ranks for the same calls
};

// float[algorithms][protocols] of microseconds, as NCCL gives it. Entries below 0 may not be chosen.
struct CostTable {
  float* cost = nullptr;
  int algorithms = 0;
  int protocols = 0;
};

// Tables of v3 and later: makes CollNet, or NVLSTree and else Tree, the cheapest way, makes CollNet the last choice, or changes nothing.
// What the user has excluded is an entry that may not be chosen. What is no table (null, no rows, rows without end) is left alone.
void Tune(const Communicator& communicator, abi::Function function, size_t bytes, const CostTable& table);

// NCCL has CollNet on for this operation.
bool OffersCollNet(const CostTable& table);

struct Choice {
  abi::Algorithm algorithm;
  abi::Protocol protocol;
};

// The table of v2, which has no costs. It cannot see what the user has excluded: nothing if there is anything pinned.
std::optional<Choice> Choose(const Communicator& communicator, abi::Function function, size_t bytes, bool collnet_support);

}  // namespace r2cc::tuner

#endif  // R2CC_NETPLUGIN_TUNER_POLICY_H_
