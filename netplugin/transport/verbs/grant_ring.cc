#include "netplugin/transport/verbs/grant_ring.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/core/hash.h"

namespace r2cc::net::verbs {
namespace {

constexpr size_t kSummedBytes = kRecordBytes - sizeof(uint32_t);

// As it lies in memory. The plugin runs on little-endian machines alone.
struct Layout {
  uint32_t number, flow;
  uint64_t placed_through, message, capacity, offset;
  uint32_t region, generation, receives, read;
  uint8_t kind, zero[3];
  uint32_t sum;
};
static_assert(sizeof(Layout) == kRecordBytes);

bool Same(const Place& a, const Place& b) { return a.region == b.region && a.generation == b.generation && a.offset == b.offset; }
Place PlaceAt(const Frame& frame, size_t i) { return frame.places.empty() ? Place{} : frame.places[i]; }

}  // namespace

bool operator==(const Record& a, const Record& b) {
  return a.kind == b.kind && a.number == b.number && a.receives == b.receives && a.read == b.read && a.flow == b.flow &&
         a.placed_through == b.placed_through && a.message == b.message && a.capacity == b.capacity && Same(a.place, b.place);
}

RecordData Encode(const Record& record, uint32_t tag) {
  Layout layout{};
  layout.number = record.number;
  layout.flow = record.flow;
  layout.placed_through = record.placed_through;
  layout.message = record.message;
  layout.capacity = record.capacity;
  layout.offset = record.place.offset;
  layout.region = record.place.region;
  layout.generation = record.place.generation;
  layout.receives = record.receives;
  layout.read = record.read;
  layout.kind = static_cast<uint8_t>(record.kind);
  layout.sum = Crc32c(&layout, kSummedBytes) ^ tag;
  RecordData data;
  std::memcpy(data.data(), &layout, sizeof(layout));
  return data;
}

bool Decode(std::span<const std::byte, kRecordBytes> bytes, uint32_t tag, Record* record) {
  Layout layout;
  std::memcpy(&layout, bytes.data(), sizeof(layout));
  if ((Crc32c(&layout, kSummedBytes) ^ tag) != layout.sum || layout.number == 0) return false;
  if (layout.kind < static_cast<uint8_t>(RecordKind::kCredit) || layout.kind > static_cast<uint8_t>(RecordKind::kGrant)) return false;
  if (layout.zero[0] != 0 || layout.zero[1] != 0 || layout.zero[2] != 0) return false;
  *record = {.kind = static_cast<RecordKind>(layout.kind),
             .number = layout.number,
             .receives = layout.receives,
             .read = layout.read,
             .flow = layout.flow,
             .placed_through = layout.placed_through,
             .message = layout.message,
             .capacity = layout.capacity,
             .place = {layout.region, layout.generation, layout.offset}};
  if (record->kind == RecordKind::kCredit) return true;
  if ((layout.region == 0) != (layout.generation == 0)) return false;
  if (record->kind == RecordKind::kAck) return true;
  return record->message >= record->placed_through && record->message - record->placed_through < kSlots;
}

// ---- the writer ----

std::optional<std::vector<Record>> GrantWriter::RecordsOf(const Frame& frame, size_t most) {
  const Record state{.kind = RecordKind::kAck, .flow = frame.flow, .placed_through = frame.message};
  if (frame.type == FrameType::kAck) return std::vector<Record>{state};
  if (frame.type != FrameType::kGrant) return std::nullopt;
  const Told& told = sent_[frame.flow];
  const MessageId end = frame.message + frame.numbers.size(), told_from = told.through - told.places.size();
  const MessageId from = std::clamp(told.through, frame.message, end);
  if (end - from > most || end - frame.message >= kSlots) return std::nullopt;
  for (MessageId message = std::max(frame.message, told_from); message < from; ++message)
    if (!Same(PlaceAt(frame, message - frame.message), told.places[message - told_from])) return std::nullopt;
  std::vector<Record> records;
  for (MessageId message = from; message < end; ++message) {
    Record record = state;
    record.kind = RecordKind::kGrant;
    record.message = message;
    record.capacity = frame.numbers[message - frame.message];
    record.place = PlaceAt(frame, message - frame.message);
    records.push_back(record);
  }
  if (records.empty()) records.push_back(state);
  Note(frame);
  return records;
}

void GrantWriter::Sent(const Frame& frame) {
  if (frame.type == FrameType::kGrant) Note(frame);
}

void GrantWriter::Note(const Frame& frame) {
  Told& told = sent_[frame.flow];
  told.through = frame.message + frame.numbers.size();
  told.places.clear();
  for (size_t i = 0; i < frame.numbers.size(); ++i) told.places.push_back(PlaceAt(frame, i));
  if (told.places.empty()) sent_.erase(frame.flow);
}

// ---- the reader ----

void GrantReader::PlacedThrough(Known* known, MessageId through) {
  while (known->first < through && !known->capacities.empty()) {
    known->capacities.pop_front();
    known->places.pop_front();
    ++known->first;
  }
  known->first = std::max(known->first, through);
}

GrantReader::Result GrantReader::Read(const Record& record, Frame* frame) {
  *frame = Frame{.type = FrameType::kAck, .flow = record.flow, .message = record.placed_through};
  if (record.kind == RecordKind::kCredit || (known_.size() >= kFlowSlots && !known_.contains(record.flow))) return Result::kGarbled;
  Known& known = known_[record.flow];
  if (record.kind == RecordKind::kAck) {
    PlacedThrough(&known, record.placed_through);
    ForgetIfEmpty(record.flow);
    return Result::kFrame;
  }
  // It may be older than a frame that has overtaken it.
  const MessageId first = std::max(known.first, record.placed_through);
  const MessageId end = std::max(known.first + known.capacities.size(), first);
  if (record.message > end) return Result::kLater;
  PlacedThrough(&known, record.placed_through);
  if (record.message == end) {
    known.capacities.push_back(record.capacity);
    known.places.push_back(record.place);
  } else if (record.message >= known.first) {
    const size_t at = record.message - known.first;
    if (known.capacities[at] != record.capacity) return Result::kGarbled;
  }
  frame->type = FrameType::kGrant;
  frame->message = known.first;
  frame->numbers.assign(known.capacities.begin(), known.capacities.end());
  const bool placed = std::any_of(known.places.begin(), known.places.end(), [](const Place& place) { return place.region != 0; });
  if (placed) frame->places.assign(known.places.begin(), known.places.end());
  return Result::kFrame;
}

void GrantReader::Heard(const Frame& frame) {
  if (frame.type != FrameType::kGrant && frame.type != FrameType::kAck) return;
  Known& known = known_[frame.flow];
  if (frame.type == FrameType::kGrant && frame.message + frame.numbers.size() >= known.first + known.capacities.size()) {
    known.first = frame.message;
    known.capacities.assign(frame.numbers.begin(), frame.numbers.end());
    known.places.clear();
    for (size_t i = 0; i < frame.numbers.size(); ++i) known.places.push_back(PlaceAt(frame, i));
  }
  PlacedThrough(&known, frame.message);
  ForgetIfEmpty(frame.flow);
}

// Of a flow without grants nothing has to be known: the next grant begins where its messages are placed.
void GrantReader::ForgetIfEmpty(FlowId flow) {
  if (known_[flow].capacities.empty()) known_.erase(flow);
}

}  // namespace r2cc::net::verbs
