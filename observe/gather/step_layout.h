// The parts of a layout that the launches of a step need. Pure.
#ifndef R2CC_OBSERVE_GATHER_STEP_LAYOUT_H_
#define R2CC_OBSERVE_GATHER_STEP_LAYOUT_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "observe/gather/flat_taps.h"
#include "observe/gather/step.h"
#include "observe/record/layout.h"

namespace r2cc::observe {

// The device's permanent copy of the layout, tags first.
std::vector<LayoutEntry> EntriesOf(const Layout& layout);

// Sets what `p` has of the layout, but for the entries' address. `rows`: their count if it is known before the launch. `places`: where each
// entry lies in a record that has all groups, for StepTap::fixed and for_each_row.
struct EntryPlace {
  uint32_t fixed, for_each_row;
};
void PlaceEntries(const Layout& layout, std::optional<uint64_t> rows, StepParameters* p, std::vector<EntryPlace>* places);

// Numbers the taps' chunks and sets taps, count and chunks of the launch.
void SetTaps(std::span<StepTap> taps, uint64_t chunk_bytes, uint64_t rows_most, StepParameters* p);
// The same for CopyFlatShare(), but for the taps. REQUIRES: chunk_bytes is a multiple of kUnitBytes.
void SetFlatTaps(std::span<FlatTap> taps, uint64_t chunk_bytes, uint64_t rows_most, StepParameters* p);

}  // namespace r2cc::observe

#endif  // R2CC_OBSERVE_GATHER_STEP_LAYOUT_H_
