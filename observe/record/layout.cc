#include "observe/record/layout.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>

#include "base/core/byte_reader.h"

namespace r2cc::observe {
namespace {

constexpr uint32_t kLayoutMagic = 0x4c543252;  // "R2TL"
constexpr uint64_t kTensorBytesMax = uint64_t{1} << 40;

// No value: it overflows.
std::optional<uint64_t> Product(uint64_t first, std::span<const uint64_t> shape) {
  uint64_t product = first;
  for (uint64_t of : shape)
    if (__builtin_mul_overflow(product, of, &product) || product > kTensorBytesMax) return std::nullopt;
  return product;
}

std::optional<uint64_t> RecordBytesOf(const Tap& tap, uint32_t rows) { return Product(BytesOf(tap.RecordDtype()), tap.RecordShape(rows)); }

bool Place(const std::vector<Tap>& taps, bool are_tags, uint64_t groups, uint32_t rows, uint64_t* end, std::vector<Slot>* slots) {
  for (const Tap& tap : taps) {
    Slot slot;
    if (are_tags || (groups >> tap.group & 1) != 0) {
      const std::optional<uint64_t> bytes = RecordBytesOf(tap, rows);
      if (!bytes) return false;
      slot = {*end, *bytes};
      *end = RoundUp(*end + *bytes, kTapAlignment);
    }
    slots->push_back(slot);
  }
  return true;
}

template <typename T>
void Put(std::vector<uint8_t>* bytes, T value) {
  const auto* raw = reinterpret_cast<const uint8_t*>(&value);
  bytes->insert(bytes->end(), raw, raw + sizeof(value));
}

void PutTaps(const std::vector<Tap>& taps, std::vector<uint8_t>* bytes) {
  for (const Tap& tap : taps) {
    Put(bytes, static_cast<uint8_t>(tap.op));
    Put(bytes, static_cast<uint8_t>(tap.dtype));
    Put(bytes, tap.group);
    Put(bytes, static_cast<uint8_t>(tap.rows));
    Put(bytes, static_cast<uint8_t>(tap.shape.size()));
    for (uint64_t of : tap.shape) Put(bytes, of);
    Put(bytes, static_cast<uint8_t>(tap.name.size()));
    bytes->insert(bytes->end(), tap.name.begin(), tap.name.end());
  }
}

bool TakeTaps(ByteReader* reader, size_t count, std::vector<Tap>* taps) {
  for (size_t i = 0; i < count && reader->ok(); ++i) {
    Tap tap;
    const auto op = reader->Get<uint8_t>(), dtype = reader->Get<uint8_t>();
    tap.group = reader->Get<uint8_t>();
    const auto rows = reader->Get<uint8_t>(), dimensions = reader->Get<uint8_t>();
    if (op > static_cast<uint8_t>(kOperatorNewest) || dtype >= static_cast<uint8_t>(kDtypeNewest) || rows > 1 ||
        dimensions > kDimensionsMax)
      return false;
    tap.op = static_cast<Operator>(op);
    tap.dtype = static_cast<Dtype>(dtype);
    tap.rows = rows != 0;
    for (int d = 0; d < dimensions; ++d) tap.shape.push_back(reader->Get<uint64_t>());
    const std::span<const uint8_t> name = reader->Take(reader->Get<uint8_t>());
    tap.name.assign(name.begin(), name.end());
    taps->push_back(std::move(tap));
  }
  return reader->ok();
}

// ASCII without what would need care in JSON or a terminal.
bool SoundName(std::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMax &&
         std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c <= '~' && c != '"' && c != '\\'; });
}

std::string Shown(std::string name) {
  for (char& c : name)
    if (c < ' ' || c > '~') c = '?';
  return name;
}

}  // namespace

const char* NameOf(Dtype dtype) {
  // As safetensors names them.
  static constexpr const char* kNames[] = {"U8",  "I8",  "BOOL", "U16", "I16", "F16",     "BF16",    "U32",
                                           "I32", "F32", "U64",  "I64", "F64", "F8_E4M3", "F8_E5M2", "STATS"};
  return kNames[static_cast<size_t>(dtype)];
}

Dtype Tap::RecordDtype() const {
  switch (op) {
    case Operator::kCopy: return dtype;
    case Operator::kStats: return Dtype::kStats;
    case Operator::kHash: return Dtype::kU64;
  }
  return dtype;
}

std::vector<uint64_t> Tap::RecordShape(uint32_t rows_now) const {
  if (op == Operator::kHash) return {};
  std::vector<uint64_t> result;
  if (rows) result.push_back(rows_now);
  if (op == Operator::kCopy) result.insert(result.end(), shape.begin(), shape.end());
  return result;
}

std::optional<Slots> SlotsOf(const Layout& layout, uint64_t groups, uint32_t rows) {
  if (rows > layout.rows_most) return std::nullopt;
  Slots slots;
  uint64_t end = sizeof(RecordHeader);
  if (!Place(layout.tags, true, groups, rows, &end, &slots.tags) || !Place(layout.taps, false, groups, rows, &end, &slots.taps))
    return std::nullopt;
  slots.record_bytes = RecordBytes(end);
  return slots;
}

std::vector<uint8_t> Encode(const Layout& layout) {
  std::vector<uint8_t> bytes;
  Put(&bytes, kLayoutMagic);
  Put(&bytes, uint32_t{0});  // the length, below
  Put(&bytes, layout.id);
  Put(&bytes, layout.rank);
  Put(&bytes, layout.rows_most);
  Put(&bytes, static_cast<uint16_t>(layout.tags.size()));
  Put(&bytes, static_cast<uint16_t>(layout.taps.size()));
  PutTaps(layout.tags, &bytes);
  PutTaps(layout.taps, &bytes);
  bytes.resize(RoundUp(bytes.size(), 8));
  const auto length = static_cast<uint32_t>(bytes.size());
  std::memcpy(bytes.data() + 4, &length, sizeof(length));
  return bytes;
}

bool Decode(std::span<const uint8_t> bytes, Layout* layout, std::string* error) {
  ByteReader reader(bytes);
  Layout found;
  const auto magic = reader.Get<uint32_t>(), length = reader.Get<uint32_t>();
  if (!reader.ok() || magic != kLayoutMagic || length > bytes.size()) {
    *error = "a layout is not one: foreign or cut";
    return false;
  }
  found.id = reader.Get<uint32_t>();
  found.rank = reader.Get<uint32_t>();
  found.rows_most = reader.Get<uint32_t>();
  const auto tags = reader.Get<uint16_t>(), taps = reader.Get<uint16_t>();
  if (!reader.ok() || tags > kTagsMax || taps > kTapsMax || !TakeTaps(&reader, tags, &found.tags) ||
      !TakeTaps(&reader, taps, &found.taps)) {
    *error = "layout " + std::to_string(found.id) + ": what it says of a tap makes no sense";
    return false;
  }
  *error = Check(found);
  if (!error->empty()) return false;
  *layout = std::move(found);
  return true;
}

std::string Check(const Layout& layout) {
  const std::string label = "layout " + std::to_string(layout.id) + ": ";
  if (layout.taps.empty()) return label + "it has no tap";
  if (layout.taps.size() > kTapsMax) return label + std::to_string(layout.taps.size()) + " taps, at most " + std::to_string(kTapsMax);
  if (layout.tags.size() > kTagsMax) return label + std::to_string(layout.tags.size()) + " tags, at most " + std::to_string(kTagsMax);
  for (const std::vector<Tap>* list : {&layout.tags, &layout.taps}) {
    std::set<std::string> names;
    for (const Tap& tap : *list) {
      if (!SoundName(tap.name))
        return label + "name \"" + Shown(tap.name.substr(0, kNameBytesMax)) + "\": 1 to 200 printable ASCII characters without blanks";
      if (!names.insert(tap.name).second) return label + tap.name + " is there twice";
      if (tap.shape.size() > kDimensionsMax) return label + tap.name + ": more than 8 dimensions";
      if (tap.group >= kGroupsMax) return label + tap.name + ": group " + std::to_string(tap.group) + ", at most 63";
      if (tap.dtype >= Dtype::kStats || tap.op > kOperatorNewest) return label + tap.name + ": no such dtype or operator";
      if (!Product(BytesOf(tap.dtype), tap.shape)) return label + tap.name + ": more than 1 TiB";
    }
  }
  if (!SlotsOf(layout, ~uint64_t{0}, layout.rows_most)) return label + "a record would have more than 1 TiB";
  return "";
}

}  // namespace r2cc::observe
