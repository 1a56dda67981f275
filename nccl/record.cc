#include "nccl/record.h"

#include <algorithm>
#include <map>

#include "base/core/check.h"

namespace r2cc::nccl {
namespace {

constexpr uint32_t kMagic = 0x52320000 | kRecordVersion;
constexpr uint32_t kAbleBit = 1U << 31;
constexpr uint32_t kCollNetBit = 1U << 30;
constexpr uint32_t kChildMask = kCollNetBit - 1;
constexpr uint64_t kKib = 1024;
constexpr uint32_t kHalf = 0xffff;

}  // namespace

void Encode(const Record& record, uint32_t rank, std::span<uint32_t> vector) {
  R2CC_CHECK(vector.size() % kRecordWords == 0 && rank < vector.size() / kRecordWords);
  std::fill(vector.begin(), vector.end(), UINT32_MAX);
  uint32_t* const at = vector.data() + size_t{rank} * kRecordWords;
  at[0] = kMagic;
  at[1] = static_cast<uint32_t>(record.node_key);
  at[2] = static_cast<uint32_t>(record.node_key >> 32);
  at[3] = std::min(record.kept_permille, kHalf) | std::min(record.rails, kHalf) << 16;
  at[4] = record.free_mib;
  at[5] = (record.child & kChildMask) | (record.able ? kAbleBit : 0) | (record.offers_collnet ? kCollNetBit : 0);
  at[6] = record.node_mbps;
  at[7] = static_cast<uint32_t>(std::min<uint64_t>(record.collnet_min_bytes / kKib + (record.collnet_min_bytes % kKib != 0), UINT32_MAX));
}

Vector Decode(std::span<const uint32_t> minimum, uint32_t child) {
  Vector vector;
  const auto ranks = static_cast<uint32_t>(minimum.size() / kRecordWords);
  R2CC_CHECK(minimum.size() % kRecordWords == 0 && ranks > 0);
  std::map<uint64_t, uint32_t> numbers;
  vector.free_mib = UINT32_MAX;
  vector.all_have_child = true;
  vector.collnet.is_there = true;
  uint32_t rails = UINT32_MAX;
  uint32_t fastest_mbps = 0;
  bool all_know_mbps = true;
  bool all_ask = true;  // for CollNet from some size on
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const uint32_t* const at = minimum.data() + size_t{rank} * kRecordWords;
    if (at[0] != kMagic) {
      vector.problem = "rank " + std::to_string(rank) + " has another release of libr2cc-nccl.so";
      return vector;
    }
    if ((at[5] & kAbleBit) == 0) {
      vector.problem = "rank " + std::to_string(rank) + " lacks libnccl-net-r2cc.so or libnccl-tuner-r2cc.so, or its driver is too old";
      return vector;
    }
    const uint64_t key = at[1] | uint64_t{at[2]} << 32;
    const uint32_t kept = std::min(at[3] & kHalf, 1000U);
    const auto [number, is_new] = numbers.try_emplace(key, static_cast<uint32_t>(numbers.size()));
    if (is_new) vector.nodes.kept_permille.push_back(kept);
    uint32_t& of_node = vector.nodes.kept_permille[number->second];
    of_node = std::min(of_node, kept);
    vector.node_of.push_back(number->second);
    rails = std::min(rails, at[3] >> 16);
    vector.free_mib = std::min(vector.free_mib, at[4]);
    vector.all_have_child = vector.all_have_child && child != 0 && (at[5] & kChildMask) == child;
    vector.collnet.is_there = vector.collnet.is_there && (at[5] & kCollNetBit) != 0;
    // The fastest node has most to add up.
    fastest_mbps = std::max(fastest_mbps, at[6]);
    all_know_mbps = all_know_mbps && at[6] != 0;
    all_ask = all_ask && at[7] != 0;
    vector.collnet.bytes_min = std::max(vector.collnet.bytes_min, at[7] * kKib);
  }
  vector.nodes.ranks = ranks;
  vector.collnet.node_bytes_per_s = all_know_mbps ? fastest_mbps * 1e6 / 8 : 0;
  if (!all_ask) vector.collnet.bytes_min = 0;
  // NCCL makes two channels of each NIC, one for either half of the double tree.
  vector.nodes.channels = 2 * std::max(1U, rails);
  // Among two nodes there is no better seat.
  vector.is_small = numbers.size() < 3;
  if (vector.is_small) vector.problem = "it has fewer than three nodes";
  if (numbers.size() > plan::kSeatNodesMax) vector.problem = "it has too many nodes";
  return vector;
}

}  // namespace r2cc::nccl
