#include "plan/collective/seats.h"

#include <algorithm>
#include <numeric>

#include "base/core/check.h"

namespace r2cc::plan {
namespace {

constexpr double kPermille = 1000;

// The parent of `node` > 0 in the first half's tree. Node 0 is the root. A node with k trailing zero bits is k levels above the leaves.
uint32_t Parent(uint32_t node, uint32_t nodes) {
  const uint32_t lowest = node & (~node + 1);
  const uint32_t without = node ^ lowest;
  const uint32_t above = without | (lowest << 1);
  return above < nodes ? above : without;
}

double Rate(const SeatNodes& nodes, uint32_t node) { return std::max(1U, nodes.kept_permille[node]) / kPermille; }

double RingLoad(const SeatNodes& nodes) { return 2 * (nodes.ranks - 1.0) / nodes.ranks; }

// The longest of the nodes' times when each position moves so much.
template <typename Load>
double Slowest(const SeatNodes& nodes, std::span<const uint32_t> order, Load load) {
  double time = 0;
  for (size_t position = 0; position < order.size(); ++position) time = std::max(time, load(position) / Rate(nodes, order[position]));
  return time;
}

bool IsOrder(std::span<const uint32_t> order, size_t nodes) {
  if (order.size() != nodes) return false;
  std::vector<bool> seen(nodes);
  for (const uint32_t node : order) {
    if (node >= nodes || seen[node]) return false;
    seen[node] = true;
  }
  return true;
}

// From this size on `tree` with its fill takes `allowed`, which is more than `tree`.
uint64_t LeastBytes(const SeatNodes& nodes, double tree, double allowed) {
  const double fill =
      kFillSeen * static_cast<double>(TreeHops(static_cast<uint32_t>(nodes.kept_permille.size())) * kTreeChunkBytes) * nodes.channels;
  return static_cast<uint64_t>(std::min(fill * tree / (allowed - tree), 0x1p62)) + 1;
}

}  // namespace

std::vector<double> TreeLoads(uint32_t nodes) {
  R2CC_CHECK(nodes >= 1 && nodes <= kSeatNodesMax);
  // Links of each node in the first tree; every link carries half of the vector each way.
  std::vector<uint32_t> links(nodes);
  for (uint32_t node = 1; node < nodes; ++node) {
    ++links[node];
    ++links[Parent(node, nodes)];
  }
  // The second tree is the first one's mirror, or shifted by one if the number is odd.
  std::vector<double> loads(nodes);
  for (uint32_t node = 0; node < nodes; ++node) {
    const uint32_t twin = nodes % 2 == 0 ? nodes - 1 - node : (node + nodes - 1) % nodes;
    loads[node] = (links[node] + links[twin]) / 2.0;
  }
  return loads;
}

uint32_t FirstSeat(uint32_t nodes) {
  const std::vector<double> loads = TreeLoads(nodes);
  return static_cast<uint32_t>(std::min_element(loads.begin(), loads.end()) - loads.begin());
}

uint32_t TreeHops(uint32_t nodes) {
  uint32_t hops = 0;
  for (uint32_t node = 1; node < nodes; ++node) {
    uint32_t up = 0;
    for (uint32_t at = node; at != 0; at = Parent(at, nodes)) ++up;
    hops = std::max(hops, up);
  }
  return 2 * hops;
}

double TreeFill(uint64_t bytes, uint32_t nodes, uint32_t channels) {
  const double chunks = static_cast<double>(bytes) / static_cast<double>(kTreeChunkBytes) / std::max(1U, channels);
  return 1 + TreeHops(nodes) / std::max(1.0, chunks);
}

double FlatRingTime(const SeatNodes& nodes) {
  const auto slowest = std::min_element(nodes.kept_permille.begin(), nodes.kept_permille.end()) - nodes.kept_permille.begin();
  return RingLoad(nodes) / Rate(nodes, static_cast<uint32_t>(slowest));
}

double UsualTime(const SeatNodes& nodes) {
  std::vector<uint32_t> natural(nodes.kept_permille.size());
  std::iota(natural.begin(), natural.end(), 0);
  const std::vector<double> loads = TreeLoads(static_cast<uint32_t>(natural.size()));
  return *std::max_element(loads.begin(), loads.end()) < RingLoad(nodes) ? kTreePrice * TreeTime(nodes, natural) : FlatRingTime(nodes);
}

double TreeTime(const SeatNodes& nodes, std::span<const uint32_t> order) {
  R2CC_CHECK(IsOrder(order, nodes.kept_permille.size()));
  const std::vector<double> loads = TreeLoads(static_cast<uint32_t>(order.size()));
  return Slowest(nodes, order, [&](size_t position) { return loads[position]; });
}

std::vector<uint32_t> SeatOrder(const SeatNodes& nodes) {
  const auto count = static_cast<uint32_t>(nodes.kept_permille.size());
  const std::vector<double> loads = TreeLoads(count);
  std::vector<uint32_t> positions(count);
  std::iota(positions.begin(), positions.end(), 0);
  std::vector<uint32_t> by_rate = positions;
  std::stable_sort(positions.begin(), positions.end(), [&](uint32_t a, uint32_t b) { return loads[a] < loads[b]; });
  std::stable_sort(by_rate.begin(), by_rate.end(), [&](uint32_t a, uint32_t b) { return nodes.kept_permille[a] < nodes.kept_permille[b]; });
  const auto most = nodes.kept_permille[by_rate.back()];
  const auto sound = std::find_if(by_rate.begin(), by_rate.end(), [&](uint32_t node) { return nodes.kept_permille[node] == most; });
  // Sound nodes are alike: they take what is left from the first position to the last.
  std::sort(positions.begin() + (sound - by_rate.begin()), positions.end());
  std::vector<uint32_t> order(count);
  for (uint32_t i = 0; i < count; ++i) order[positions[i]] = by_rate[i];
  return order;
}

RingNextToTree MixWithRing(const SeatNodes& nodes, std::span<const uint32_t> order) {
  R2CC_CHECK(IsOrder(order, nodes.kept_permille.size()));
  const std::vector<double> loads = TreeLoads(static_cast<uint32_t>(order.size()));
  const double ring = RingLoad(nodes);
  const auto time = [&](double part) {
    return Slowest(nodes, order, [&](size_t position) { return part * ring + (1 - part) * loads[position]; });
  };
  // The largest of linear functions is convex.
  double low = 0;
  double high = 1;
  for (int i = 0; i < 100; ++i) {
    const double third = (high - low) / 3;
    if (time(low + third) <= time(high - third))
      high -= third;
    else
      low += third;
  }
  const double part = (low + high) / 2;
  return {part, time(part)};
}

SeatDecision DecideSeats(const SeatNodes& nodes, std::span<const uint32_t> current) {
  const size_t count = nodes.kept_permille.size();
  if (count < 2 || count > kSeatNodesMax || nodes.ranks < count || nodes.channels == 0) return {};
  const double usual = UsualTime(nodes);
  SeatDecision decision{.order = SeatOrder(nodes)};
  double tree = kTreePrice * TreeTime(nodes, decision.order);
  const bool seated = IsOrder(current, count);
  if (seated) {
    const double kept = kTreePrice * TreeTime(nodes, current);
    if (kept * (1 - kSeatGain) <= tree) {
      tree = kept;
      decision.order.assign(current.begin(), current.end());
    }
  }
  const double allowed = usual * (1 - (seated ? kSeatGain / 3 : kSeatGain));
  if (tree >= allowed) return {};
  decision.over_usual = tree / usual;
  decision.bytes_min = LeastBytes(nodes, tree, allowed);
  return decision;
}

}  // namespace r2cc::plan
