#include "plan/collective/ways.h"

#include <algorithm>
#include <numeric>

#include "plan/schedule/cost.h"

namespace r2cc::plan {
namespace {

// Beyond any vector.
constexpr double kBytesMost = 1e18;

// kUsual: no gain, or CollNet is not to be had.
WayDecision ByCollNet(const SeatNodes& nodes, const CollNetOffer& collnet, bool is_current) {
  const size_t count = nodes.kept_permille.size();
  const bool knows_limit = collnet.bytes_min > 0 || collnet.node_bytes_per_s > 0;
  if (!collnet.is_there || !knows_limit || count < 2 || count > kSeatNodesMax || nodes.ranks < count) return {};
  std::vector<double> rates;
  for (const uint32_t permille : nodes.kept_permille) rates.push_back(std::max(1U, permille) / 1000.0);
  double time = kCollNetPrice * LowerBoundTime(1, rates);
  // Each GPU of a node has a process that adds up its part.
  if (collnet.bytes_min == 0)
    time *= std::max(1.0, collnet.node_bytes_per_s / (kCollNetBytesPerS * static_cast<double>(nodes.ranks / count)));
  const double usual = UsualTime(nodes);
  const double allowed = usual * (1 - (is_current ? kSeatGain / 3 : kSeatGain));
  if (time >= allowed) return {};
  // From here on it is allowed with its fill, too.
  const double bytes_least = std::min(kCollNetFillBytes / (allowed - time), kBytesMost);
  WayDecision decision{.way = Way::kCollNet,
                       .order = std::vector<uint32_t>(count),
                       .bytes_min = std::max(collnet.bytes_min, static_cast<uint64_t>(bytes_least)),
                       .over_usual = time / usual};
  std::iota(decision.order.begin(), decision.order.end(), 0);
  return decision;
}

WayDecision ByTree(const SeatNodes& nodes, const WayDecision& current) {
  SeatDecision seat = DecideSeats(nodes, current.way == Way::kTree ? current.order : std::vector<uint32_t>());
  if (seat.order.empty()) return {};
  return {.way = Way::kTree, .order = std::move(seat.order), .bytes_min = seat.bytes_min, .over_usual = seat.over_usual};
}

}  // namespace

WayDecision DecideWay(const SeatNodes& nodes, const CollNetOffer& collnet, const WayDecision& current) {
  // Nothing is lost: nothing of NCCL's is changed, also if another way would be faster.
  if (std::all_of(nodes.kept_permille.begin(), nodes.kept_permille.end(), [](uint32_t permille) { return permille >= 1000; })) return {};
  WayDecision tree = ByTree(nodes, current);
  WayDecision reduced = ByCollNet(nodes, collnet, current.way == Way::kCollNet);
  if (tree.way == Way::kUsual) return reduced;
  if (reduced.way == Way::kUsual) return tree;
  // The tree costs no processors, so it wins a draw; the one in use wins a small difference.
  if (current.way == Way::kCollNet) return tree.over_usual < reduced.over_usual * (1 - kSeatGain) ? tree : reduced;
  return reduced.over_usual < tree.over_usual * (1 - kSeatGain) ? reduced : tree;
}

}  // namespace r2cc::plan
