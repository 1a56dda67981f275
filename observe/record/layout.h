// Describes the tags and taps of a record, and the place of each. Layouts of others come out of shared memory: decoding checks all of it.
#ifndef R2CC_OBSERVE_RECORD_LAYOUT_H_
#define R2CC_OBSERVE_RECORD_LAYOUT_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "observe/record/kinds.h"
#include "observe/record/record.h"

namespace r2cc::observe {

const char* NameOf(Dtype dtype);

constexpr size_t kTapsMax = 4096;
constexpr size_t kTagsMax = 64;
constexpr size_t kDimensionsMax = 8, kNameBytesMax = 200, kGroupsMax = 64;

struct Tap {
  std::string name;
  Operator op = Operator::kCopy;
  Dtype dtype = Dtype::kU8;  // of the tensor
  uint8_t group = 0;
  bool rows = false;            // its first dimension is that of the record's rows, and `shape` is of one row
  std::vector<uint64_t> shape;  // of the tensor

  // Its part in the record.
  Dtype RecordDtype() const;
  std::vector<uint64_t> RecordShape(uint32_t rows_now) const;
};

struct Layout {
  uint32_t id = 0;
  uint32_t rank = 0;
  uint32_t rows_most = 0;
  std::vector<Tap> tags;  // in every record; their group means nothing
  std::vector<Tap> taps;
};

struct Slot {
  uint64_t offset = 0, bytes = 0;  // bytes 0, offset 0: its group is off
};

// The places: tags first, then taps. No value: the sizes make no sense (an overflow, more rows than the layout has).
struct Slots {
  std::vector<Slot> tags, taps;
  uint64_t record_bytes = 0;
};
std::optional<Slots> SlotsOf(const Layout& layout, uint64_t groups, uint32_t rows);

std::vector<uint8_t> Encode(const Layout& layout);
// The layout at the start of `bytes`, which states its own length; false and one line if it makes no sense.
bool Decode(std::span<const uint8_t> bytes, Layout* layout, std::string* error);

// Empty, or what is wrong with it: one line.
std::string Check(const Layout& layout);

}  // namespace r2cc::observe

#endif  // R2CC_OBSERVE_RECORD_LAYOUT_H_
