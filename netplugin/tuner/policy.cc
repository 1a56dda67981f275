#include "netplugin/tuner/policy.h"

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

bool WantsCollNet(const Communicator& communicator, abi::Function function, size_t bytes) {
  if (!communicator.collnet_min_bytes.has_value() || function != abi::Function::kAllReduce) return false;
  // Within one node there is nothing to plan.
  if (communicator.nodes < 2 || communicator.nodes > communicator.ranks || communicator.ranks > kRanksMax) return false;
  return bytes >= *communicator.collnet_min_bytes && bytes <= kBytesMax;
}

bool WantsTree(const Communicator& communicator, abi::Function function) {
  return communicator.seat && function == abi::Function::kAllReduce && communicator.nodes > 1;
}

// The first that NCCL allows.
void MakeCheapest(std::span<const abi::Algorithm> algorithms, const CostTable& table) {
  for (const abi::Algorithm algorithm : algorithms) {
    if (static_cast<int>(algorithm) >= table.algorithms) continue;
    float& cost = table.cost[static_cast<int>(algorithm) * table.protocols + static_cast<int>(kProtocol)];
    // Neither ignored nor a way without end, and a number at all.
    if (!(cost >= 0 && cost <= std::numeric_limits<float>::max())) continue;
    cost = 0;
    return;
  }
}

}  // namespace

void Tune(const Communicator& communicator, abi::Function function, size_t bytes, const CostTable& table) {
  const bool tree = WantsTree(communicator, function);
  if ((!tree && !WantsCollNet(communicator, function, bytes)) || table.cost == nullptr) return;
  if (table.algorithms > kTableSideMax || table.protocols > kTableSideMax || static_cast<int>(kProtocol) >= table.protocols) return;
  MakeCheapest(tree ? std::span<const abi::Algorithm>(kTree) : std::span<const abi::Algorithm>(kCollNet), table);
}

std::optional<Choice> Choose(const Communicator& communicator, abi::Function function, size_t bytes, bool collnet_support) {
  if (WantsTree(communicator, function) && !communicator.pinned) return Choice{abi::Algorithm::kTree, kProtocol};
  if (!collnet_support || communicator.pinned || !WantsCollNet(communicator, function, bytes)) return std::nullopt;
  // Whether Direct is possible is not said here; a chain always is.
  return Choice{abi::Algorithm::kCollNetChain, kProtocol};
}

}  // namespace r2cc::tuner
