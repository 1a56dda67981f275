#include "netplugin/tuner/policy.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <span>

namespace r2cc::tuner {
namespace {

// NCCL counts ranks with an int, and no buffer is larger than a difference of pointers: beyond them stand numbers that were negative.
constexpr size_t kRanksMax = std::numeric_limits<int>::max();
constexpr size_t kBytesMax = PTRDIFF_MAX;
// A table with more rows or columns than this is none: NCCL 2.30 has 7 and 3.
constexpr int kTableSideMax = 64;

// Direct first: NCCL allows it only in nodes with NVSwitch, where each GPU of a node then has its share of the work; a chain goes through
// one after the other.
constexpr abi::Algorithm kCollNet[] = {abi::Algorithm::kCollNetDirect, abi::Algorithm::kCollNetChain};
// Where there is NVLSTree it needs half of the SMs. Both have the same tree of nodes.
constexpr abi::Algorithm kTree[] = {abi::Algorithm::kNvlsTree, abi::Algorithm::kTree};
// CollNet has no other, and a seat is used for large vectors.
constexpr abi::Protocol kProtocol = abi::Protocol::kSimple;
// Above any time that NCCL can estimate, and below its largest number, which would be no choice at all.
constexpr float kLastChoice = 1e30F;

enum class Wish { kNothing, kTree, kCollNet, kNoCollNet };

Wish WishFor(const Communicator& communicator, abi::Function function, size_t bytes) {
  // Within one node there is nothing to plan.
  if (function != abi::Function::kAllReduce || communicator.nodes < 2) return Wish::kNothing;
  if (communicator.way == abi::SeatWay::kTree) return Wish::kTree;
  if (communicator.way == abi::SeatWay::kCollNet) return Wish::kCollNet;
  if (communicator.agreed) return Wish::kNoCollNet;
  if (!communicator.collnet_min_bytes.has_value() || communicator.nodes > communicator.ranks || communicator.ranks > kRanksMax)
    return Wish::kNothing;
  return bytes >= *communicator.collnet_min_bytes && bytes <= kBytesMax ? Wish::kCollNet : Wish::kNothing;
}

bool IsTable(const CostTable& table) {
  return table.cost != nullptr && table.algorithms <= kTableSideMax && table.protocols <= kTableSideMax &&
         static_cast<int>(kProtocol) < table.protocols;
}

// Null: NCCL does not have it, or it may not be chosen.
float* CostOf(abi::Algorithm algorithm, const CostTable& table) {
  if (static_cast<int>(algorithm) >= table.algorithms) return nullptr;
  float& cost = table.cost[static_cast<int>(algorithm) * table.protocols + static_cast<int>(kProtocol)];
  // Neither ignored nor a way without end, and a number at all.
  return cost >= 0 && cost <= std::numeric_limits<float>::max() ? &cost : nullptr;
}

// The first that NCCL allows.
void MakeCheapest(std::span<const abi::Algorithm> algorithms, const CostTable& table) {
  for (const abi::Algorithm algorithm : algorithms)
    if (float* const cost = CostOf(algorithm, table); cost != nullptr) {
      *cost = 0;
      return;
    }
}

}  // namespace

void Tune(const Communicator& communicator, abi::Function function, size_t bytes, const CostTable& table) {
  const Wish wish = WishFor(communicator, function, bytes);
  if (wish == Wish::kNothing || !IsTable(table)) return;
  if (wish != Wish::kNoCollNet) return MakeCheapest(wish == Wish::kTree ? std::span(kTree) : std::span(kCollNet), table);
  for (const abi::Algorithm algorithm : kCollNet)
    if (float* const cost = CostOf(algorithm, table); cost != nullptr) *cost = kLastChoice;
}

bool OffersCollNet(const CostTable& table) {
  return IsTable(table) && std::any_of(std::begin(kCollNet), std::end(kCollNet),
                                       [&](abi::Algorithm algorithm) { return CostOf(algorithm, table) != nullptr; });
}

std::optional<Choice> Choose(const Communicator& communicator, abi::Function function, size_t bytes, bool collnet_support) {
  if (communicator.pinned) return std::nullopt;
  switch (WishFor(communicator, function, bytes)) {
    case Wish::kTree: return Choice{abi::Algorithm::kTree, kProtocol};
    // Whether Direct is possible is not said here; a chain always is.
    case Wish::kCollNet: return collnet_support ? std::optional(Choice{abi::Algorithm::kCollNetChain, kProtocol}) : std::nullopt;
    // NCCL 2.21 has no costs here, and no other way of its own can be named for it.
    case Wish::kNoCollNet:
    case Wish::kNothing: break;
  }
  return std::nullopt;
}

}  // namespace r2cc::tuner
