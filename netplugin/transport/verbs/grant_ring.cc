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
  uint64_t placed_through, capacity, offset, next_offset;
  uint32_t region, generation, receives, read;
  uint8_t kind, messages, ahead, zero;
  uint32_t sum;
};
static_assert(sizeof(Layout) == kRecordBytes);

bool Same(const BufferPlace& a, const BufferPlace& b) {
  return a.region == b.region && a.generation == b.generation && a.offset == b.offset;
}
BufferPlace PlaceAt(const FlowReport& report, size_t i) { return report.places.empty() ? BufferPlace{} : report.places[i]; }
// The message after those of the record differs from them in its offset alone.
bool Joins(const Record& record, uint64_t capacity, const BufferPlace& place) {
  return record.messages < kMessagesPerRecord && record.capacity == capacity && record.place.region == place.region &&
         record.place.generation == place.generation;
}

}  // namespace

bool operator==(const Record& a, const Record& b) {
  return a.kind == b.kind && a.number == b.number && a.receives == b.receives && a.read == b.read && a.flow == b.flow &&
         a.placed_through == b.placed_through && a.messages == b.messages && a.message == b.message && a.capacity == b.capacity &&
         Same(a.place, b.place) && a.next_offset == b.next_offset;
}

RecordData Encode(const Record& record, uint32_t tag) {
  Layout layout{};
  layout.number = record.number;
  layout.flow = record.flow;
  layout.placed_through = record.placed_through;
  layout.messages = record.messages;
  layout.ahead = static_cast<uint8_t>(record.kind == RecordKind::kGrant ? record.message - record.placed_through : 0);
  layout.capacity = record.capacity;
  layout.offset = record.place.offset;
  layout.next_offset = record.next_offset;
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
  if ((Crc32c(&layout, kSummedBytes) ^ tag) != layout.sum || layout.zero != 0) return false;
  if (layout.kind < static_cast<uint8_t>(RecordKind::kCredit) || layout.kind > static_cast<uint8_t>(RecordKind::kGrant)) return false;
  const bool grant = layout.kind == static_cast<uint8_t>(RecordKind::kGrant);
  if (!grant && layout.ahead != 0) return false;
  *record = {.kind = static_cast<RecordKind>(layout.kind),
             .number = layout.number,
             .receives = layout.receives,
             .read = layout.read,
             .flow = layout.flow,
             .placed_through = layout.placed_through,
             .messages = layout.messages,
             .message = grant ? layout.placed_through + layout.ahead : 0,
             .capacity = layout.capacity,
             .place = {layout.region, layout.generation, layout.offset},
             .next_offset = layout.next_offset};
  if (record->kind == RecordKind::kCredit) return true;
  if ((layout.region == 0) != (layout.generation == 0)) return false;
  if (!grant) return true;
  return layout.messages > 0 && layout.messages <= kMessagesPerRecord && layout.ahead + layout.messages <= kMessagesPerFlow;
}

// ---- the writer ----

std::optional<std::vector<Record>> GrantWriter::RecordsOf(const FlowReport& report, size_t most) {
  const Record state{.kind = RecordKind::kAck, .flow = report.flow, .placed_through = report.placed_through};
  if (most == 0) return std::nullopt;
  if (!report.grants) return std::vector<Record>{state};
  const auto it = sent_.find(report.flow);
  const Granted granted = it != sent_.end() ? it->second : Granted{};
  const MessageId end = report.placed_through + report.capacities.size(), granted_from = granted.through - granted.places.size();
  const MessageId from = std::clamp(granted.through, report.placed_through, end);
  if (end - report.placed_through > kMessagesPerFlow) return std::nullopt;
  for (MessageId message = std::max(report.placed_through, granted_from); message < from; ++message)
    if (!Same(PlaceAt(report, message - report.placed_through), granted.places[message - granted_from])) return std::nullopt;
  std::vector<Record> records;
  for (MessageId message = from; message < end; ++message) {
    const uint64_t capacity = report.capacities[message - report.placed_through];
    const BufferPlace place = PlaceAt(report, message - report.placed_through);
    if (!records.empty() && Joins(records.back(), capacity, place)) {
      ++records.back().messages;
      records.back().next_offset = place.offset;
      continue;
    }
    Record record = state;
    record.kind = RecordKind::kGrant;
    record.messages = 1;
    record.message = message;
    record.capacity = capacity;
    record.place = place;
    records.push_back(record);
  }
  if (records.empty()) records.push_back(state);
  if (records.size() > most) return std::nullopt;
  Note(report);
  return records;
}

void GrantWriter::Sent(const FlowReport& report) {
  if (report.grants) Note(report);
}

void GrantWriter::Note(const FlowReport& report) {
  // Flows that are closed leave theirs behind. What is forgotten is said again, which does no harm.
  if (sent_.size() >= kFlowSlots && !sent_.contains(report.flow)) sent_.clear();
  Granted& granted = sent_[report.flow];
  granted.through = report.placed_through + report.capacities.size();
  granted.places.clear();
  for (size_t i = 0; i < report.capacities.size(); ++i) granted.places.push_back(PlaceAt(report, i));
  if (granted.places.empty()) sent_.erase(report.flow);
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

bool GrantReader::IsOpen(FlowId flow) {
  if (is_open_(flow)) return true;
  known_.erase(flow);
  return false;
}

bool GrantReader::Grant(Known* known, MessageId message, uint64_t capacity, const BufferPlace& place) {
  if (message < known->first) return true;
  const size_t at = message - known->first;
  if (at == known->capacities.size()) {
    known->capacities.push_back(capacity);
    known->places.push_back(place);
    return true;
  }
  if (known->capacities[at] != capacity) return false;
  // Said again after other keys were.
  if (place.generation > known->places[at].generation) known->places[at] = place;
  return true;
}

GrantReader::Result GrantReader::Read(const Record& record, FlowReport* report) {
  *report = {.flow = record.flow, .placed_through = record.placed_through};
  if (record.kind == RecordKind::kCredit) return Result::kGarbled;
  if (!IsOpen(record.flow)) return Result::kNothing;
  if (known_.size() >= kFlowSlots && !known_.contains(record.flow)) {
    std::erase_if(known_, [this](const auto& entry) { return !is_open_(entry.first); });
    if (known_.size() >= kFlowSlots) return Result::kGarbled;
  }
  Known& known = known_[record.flow];
  if (record.kind == RecordKind::kAck) {
    PlacedThrough(&known, record.placed_through);
    ForgetIfEmpty(record.flow);
    return Result::kReport;
  }
  // It may be older than a frame that has overtaken it.
  const MessageId first = std::max(known.first, record.placed_through);
  if (record.message > std::max(known.first + known.capacities.size(), first)) return Result::kLater;
  PlacedThrough(&known, record.placed_through);
  for (uint8_t i = 0; i < record.messages; ++i) {
    BufferPlace place = record.place;
    if (i > 0) place.offset = record.next_offset;
    if (!Grant(&known, record.message + i, record.capacity, place)) return Result::kGarbled;
  }
  report->grants = true;
  report->placed_through = known.first;
  report->capacities.assign(known.capacities.begin(), known.capacities.end());
  const bool placed = std::any_of(known.places.begin(), known.places.end(), [](const BufferPlace& place) { return place.region != 0; });
  if (placed) report->places.assign(known.places.begin(), known.places.end());
  ForgetIfEmpty(record.flow);
  return Result::kReport;
}

void GrantReader::Received(const FlowReport& report) {
  if (!IsOpen(report.flow)) return;
  Known& known = known_[report.flow];
  if (report.grants && report.placed_through + report.capacities.size() >= known.first + known.capacities.size()) {
    known.first = report.placed_through;
    known.capacities.assign(report.capacities.begin(), report.capacities.end());
    known.places.clear();
    for (size_t i = 0; i < report.capacities.size(); ++i) known.places.push_back(PlaceAt(report, i));
  }
  PlacedThrough(&known, report.placed_through);
  ForgetIfEmpty(report.flow);
}

// Of a flow without grants nothing has to be known: the next grant begins where its messages are placed.
void GrantReader::ForgetIfEmpty(FlowId flow) {
  if (known_[flow].capacities.empty()) known_.erase(flow);
}

}  // namespace r2cc::net::verbs
