// Taps that are one run of whole 16-byte units, as activations mostly are. A launch of them has a short description of each tap, and little
// code: the model's weights have pushed both out of the caches since the last step.
#ifndef R2CC_OBSERVE_GATHER_FLAT_TAPS_H_
#define R2CC_OBSERVE_GATHER_FLAT_TAPS_H_

#include <cstdint>
#include <optional>

#include "observe/gather/step.h"

namespace r2cc::observe {

constexpr uint64_t kUnitBytes = 16;
static_assert(kTapAlignment == kUnitBytes);

struct FlatTap {
  uint64_t from;
  // In units: of the tap, and its place in a record that has all groups.
  uint32_t units, units_of_row;
  uint32_t fixed, for_each_row;
  uint32_t first_chunk;  // of the launch
  uint16_t entry;
  uint8_t group, is_tag;
};
static_assert(sizeof(FlatTap) == 32);

// None if it is not flat. `p`: of its step.
inline std::optional<FlatTap> FlatOf(const StepTap& tap, const StepParameters& p) {
  const TapWork& work = tap.work;
  const uint64_t bytes = work.RowBytes(), rows = tap.rows != 0 ? p.rows_most : 1;
  const bool has_rows = tap.rows != 0;
  const bool is_run = work.run_bytes == bytes && (!has_rows || rows <= 1 || static_cast<uint64_t>(work.row_stride) == bytes);
  if (work.op != Operator::kCopy || p.linear == 0 || (has_rows && p.rows.indices != 0) || !is_run || work.data % kUnitBytes != 0 ||
      bytes % kUnitBytes != 0 || bytes / kUnitBytes > UINT32_MAX || tap.entry > UINT16_MAX)
    return std::nullopt;
  const auto units = static_cast<uint32_t>(bytes / kUnitBytes);
  return FlatTap{
      work.data, has_rows ? 0 : units, has_rows ? units : 0, tap.fixed, tap.for_each_row, 0, static_cast<uint16_t>(tap.entry), tap.group,
      tap.is_tag};
}

// The block's share of a launch of `blocks`. `p.count` and `p.chunks` are those of the taps.
template <typename Ops>
R2CC_OBSERVE_BOTH void CopyFlatShare(Ops* ops, const StepParameters& p, const FlatTap* taps, const StepPlan& plan, uint32_t block,
                                     uint32_t blocks) {
  if (plan.decision.verdict != Verdict::kTake || p.hold != 0) return;
  const uint64_t record = p.ring + plan.decision.begin % p.ring_bytes, groups = plan.state.words.groups;
  const uint64_t of_chunk = p.chunk_bytes / kUnitBytes;
  for (uint32_t chunk = block; chunk < p.chunks; chunk += blocks) {
    const FlatTap& tap = taps[TapOfChunk(taps, p.count, chunk)];
    if (tap.is_tag == 0 && (groups >> tap.group & 1) == 0) continue;
    const uint64_t to =
        record + (plan.whole ? (tap.fixed + plan.rows * tap.for_each_row) * kUnitBytes : EndOf(ops, p, groups, plan.rows, tap.entry));
    const uint64_t units = tap.units + plan.rows * tap.units_of_row, begin = (chunk - tap.first_chunk) * of_chunk;
    const uint64_t count = begin >= units ? 0 : units - begin < of_chunk ? units - begin : of_chunk;
    ops->CopyUnits(to + begin * kUnitBytes, tap.from + begin * kUnitBytes, count);
  }
}

}  // namespace r2cc::observe

#endif  // R2CC_OBSERVE_GATHER_FLAT_TAPS_H_
