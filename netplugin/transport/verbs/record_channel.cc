#include "netplugin/transport/verbs/record_channel.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/core/check.h"

namespace r2cc::net::verbs {
namespace {

// Of the memory for records: the status slot, then the ring.
constexpr uint32_t kStatusPlace = 0;
constexpr uint32_t PlaceOf(uint32_t number) { return 1 + number % kSlots; }
static_assert(1 + kSlots == kRecordPlaces);
static_assert((kSlots & (kSlots - 1)) == 0, "numbers wrap round");

// A status is written for half of what can be told at the most: the other end has the other half to go on with meanwhile.
constexpr uint32_t kReadToReport = kSlots / 2;
constexpr uint32_t kReceivesToReport = kReceives / 2;

}  // namespace

// ---- to the other end ----

Record RecordChannel::Status(uint32_t number) {
  read_reported_ = read_;
  return {.kind = RecordKind::kCredit, .number = number, .receives = pair_->AnnounceReceives(), .read = read_};
}

int RecordChannel::Post(std::span<const RecordData> data, std::span<const uint32_t> places, bool signaled) {
  std::array<Segment, kSlots> segments;
  std::array<SendRequest, kSlots> requests;
  for (size_t i = 0; i < data.size(); ++i) {
    const RemoteMemory to = pair_->RemoteRecord(places[i]);
    segments[i] = {data[i].data(), kRecordBytes, 0};
    requests[i] = {.kind = SendKind::kWrite, .inlined = true, .segments = std::span(&segments[i], 1), .remote_address = to.address};
    requests[i].remote_key = to.key;
  }
  return pair_->Write(std::span(requests.data(), data.size()), 0, signaled);
}

int RecordChannel::Write(std::span<Record> records, size_t* written) {
  R2CC_CHECK(records.size() <= free());
  *written = std::min<size_t>(records.size(), pair_->room());
  if (*written == 0) return 0;
  std::array<RecordData, kSlots> data;
  std::array<uint32_t, kSlots> places;
  for (size_t i = 0; i < *written; ++i) {
    Record& record = records[i];
    const Record status = Status(++written_);
    record.number = status.number;
    record.receives = status.receives;
    record.read = status.read;
    data[i] = Encode(record, tag_);
    places[i] = PlaceOf(record.number);
  }
  return Post(std::span(data.data(), *written), std::span(places.data(), *written), false);
}

int RecordChannel::ReturnCredit() {
  if (pair_->unannounced_receives() < kReceivesToReport && read_ - read_reported_ < kReadToReport) return 0;
  if (pair_->room() == 0 || pair_->retired() < status_posted_) return 0;
  const RecordData data = Encode(Status(++status_written_), tag_);
  const uint32_t place = kStatusPlace;
  const int failed = Post(std::span(&data, 1), std::span(&place, 1), true);
  status_posted_ = pair_->posted();
  return failed;
}

// ---- from there ----

void RecordChannel::Credit(const Record& record) {
  pair_->Credit(record.receives);
  // A total: what is older, or more than was written, says nothing.
  if (record.read - read_there_ <= written_ - read_there_) read_there_ = record.read;
}

RecordChannel::Came RecordChannel::Next(Record* record) {
  if (Decode(pair_->RecordAt(kStatusPlace), tag_, record) && static_cast<int32_t>(record->number - status_read_) > 0 &&
      record->kind == RecordKind::kCredit) {
    status_read_ = record->number;
    Credit(*record);
  }
  // The record that lay there before is known; one that is only half there is none yet.
  const auto place = pair_->RecordAt(PlaceOf(read_ + 1));
  if (!Decode(place, tag_, record) || record->number == read_ + 1 - kSlots) return Came::kNothing;
  return record->number == read_ + 1 ? Came::kRecord : Came::kGarbled;
}

void RecordChannel::Took(const Record& record) {
  ++read_;
  Credit(record);
}

}  // namespace r2cc::net::verbs
