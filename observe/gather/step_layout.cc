#include "observe/gather/step_layout.h"

#include <algorithm>

namespace r2cc::observe {
namespace {

// The bytes of an output, or of a row of it.
uint64_t EntryBytes(const Tap& tap) {
  uint64_t bytes = BytesOf(tap.RecordDtype());
  for (const uint64_t of : tap.op == Operator::kCopy ? tap.shape : std::vector<uint64_t>()) bytes *= of;
  return bytes;
}

bool GrowsWithRows(const Tap& tap) { return tap.rows && tap.op != Operator::kHash; }

}  // namespace

std::vector<LayoutEntry> EntriesOf(const Layout& layout) {
  std::vector<LayoutEntry> entries;
  for (const bool is_tag : {true, false})
    for (const Tap& tap : is_tag ? layout.tags : layout.taps)
      entries.push_back(
          {EntryBytes(tap), (is_tag ? LayoutEntry::kTag : uint64_t{tap.group}) | (GrowsWithRows(tap) ? LayoutEntry::kRows : 0)});
  return entries;
}

void PlaceEntries(const Layout& layout, std::optional<uint64_t> rows, StepParameters* p, std::vector<EntryPlace>* places) {
  uint64_t fixed = sizeof(RecordHeader), for_each_row = 0;
  bool linear = true;
  p->all_groups = p->hash_count = 0;
  places->clear();
  for (const bool is_tag : {true, false}) {
    for (const Tap& tap : is_tag ? layout.tags : layout.taps) {
      places->push_back({static_cast<uint32_t>(fixed / kTapAlignment), static_cast<uint32_t>(for_each_row / kTapAlignment)});
      const uint64_t bytes = EntryBytes(tap);
      if (GrowsWithRows(tap) && !rows) {
        // Without rounding it grows by as much with each row.
        linear = linear && bytes % kTapAlignment == 0;
        for_each_row += bytes;
      } else {
        fixed = RoundUp(fixed + (GrowsWithRows(tap) ? *rows : 1) * bytes, kTapAlignment);
      }
      if (!is_tag) p->all_groups |= uint64_t{1} << tap.group;
      if (tap.op == Operator::kHash) ++p->hash_count;
    }
  }
  // Units of 16 bytes in 32 bits.
  p->linear = linear && ((fixed | for_each_row) >> 36) == 0 ? 1 : 0;
  p->end_fixed = fixed;
  p->end_for_each_row = for_each_row;
  p->entry_count = places->size();
}

void SetTaps(std::span<StepTap> taps, uint64_t chunk_bytes, uint64_t rows_most, StepParameters* p) {
  uint32_t chunks = 0;
  for (StepTap& tap : taps) {
    tap.first_chunk = chunks;
    chunks += static_cast<uint32_t>(ChunksOf(tap.work, tap.rows != 0 ? rows_most : 1, chunk_bytes));
  }
  p->taps = taps.data();
  p->count = static_cast<uint32_t>(taps.size());
  p->chunks = chunks;
  p->chunk_bytes = chunk_bytes;
}

void SetFlatTaps(std::span<FlatTap> taps, uint64_t chunk_bytes, uint64_t rows_most, StepParameters* p) {
  uint32_t chunks = 0;
  for (FlatTap& tap : taps) {
    tap.first_chunk = chunks;
    const uint64_t bytes = (tap.units + rows_most * tap.units_of_row) * kUnitBytes;
    chunks += static_cast<uint32_t>(std::max<uint64_t>((bytes + chunk_bytes - 1) / chunk_bytes, 1));
  }
  p->taps = nullptr;
  p->count = static_cast<uint32_t>(taps.size());
  p->chunks = chunks;
  p->chunk_bytes = chunk_bytes;
}

}  // namespace r2cc::observe
