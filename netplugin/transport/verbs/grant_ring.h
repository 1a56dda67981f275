// Grants, acknowledgements and credit as 64-byte records that one end writes into the other's memory, where it is polled. Pure.
//
// A record is a state, not a step: what it says of a flow's placed messages and of credit holds whenever it is read, and later ones say
// more. The ring of an incarnation has kSlots; record number 1, 2, 3, ... goes to slot number % kSlots and may be written when the
// reader has read the one before it there. The status slot beside the ring is written over when the write before it is complete, and
// carries credit alone.
//
// Layout, little-endian: number 4, flow 4, placed through 8, capacity 8, offset 8, next offset 8, region 4, generation 4, receives 4,
// read 4, kind 1, messages 1, ahead 1, zero 1, checksum 4: CRC-32C of the rest, exclusive-or the session's tag. A record that is half
// written, or garbled, is none. A grant is of one message, or of two that differ in their offsets alone, as neighbours in a ring of
// buffers do: so a steady flow takes a record for two messages, where the receiver tells two together.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_GRANT_RING_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_GRANT_RING_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "netplugin/flow/flow_report.h"
#include "netplugin/flow/types.h"
#include "netplugin/transport/verbs/ticket.h"

namespace r2cc::net::verbs {

constexpr size_t kRecordBytes = 64;
// 8 KiB a link. Twice what one flow may have posted, so that a flow that posts all at once is not at the end of the ring. A power of two,
// as numbers wrap round.
constexpr uint32_t kSlots = 128;
// That one record grants.
constexpr uint32_t kMessagesPerRecord = 2;

enum class RecordKind : uint8_t { kCredit = 1, kAck = 2, kGrant = 3 };

struct Record {
  RecordKind kind = RecordKind::kCredit;
  uint32_t number = 0;    // 1, 2, 3, ... of the ring, or of the status slot; it wraps round
  uint32_t receives = 0;  // total of receives posted by the writer: may be used up to there
  uint32_t read = 0;      // total of the other's ring records that the writer has read
  // kAck, kGrant:
  FlowId flow = 0;
  MessageId placed_through = 0;
  // kGrant:
  uint8_t messages = 0;  // 1 or 2
  MessageId message = 0;
  uint64_t capacity = 0;
  Place place;
  uint64_t next_offset = 0;  // of the second message; the rest is the first one's

  friend bool operator==(const Record& a, const Record& b);
};

using RecordData = std::array<std::byte, kRecordBytes>;
RecordData Encode(const Record& record, uint32_t tag);
// False if it is none.
bool Decode(std::span<const std::byte, kRecordBytes> bytes, uint32_t tag, Record* record);

// At the end that grants: a report as the records that say what the other end has not heard on this link.
class GrantWriter {
 public:
  // Records without number and credit, at most `most`. Nothing: it does not go as records - its keys have changed, or it takes more - and
  // leaves as a frame; Sent() it.
  std::optional<std::vector<Record>> RecordsOf(const FlowReport& report, size_t most);
  // It left as a frame.
  void Sent(const FlowReport& report);

 private:
  struct Told {
    MessageId through = 0;     // granted on this link
    std::deque<Place> places;  // of the last of them
  };
  void Note(const FlowReport& report);

  std::map<FlowId, Told> sent_;
};

// At the other end.
class GrantReader {
 public:
  // `is_open`: the flow is still open here. What is said of others is nothing.
  explicit GrantReader(std::function<bool(FlowId)> is_open) : is_open_(std::move(is_open)) {}

  enum class Result {
    kReport,   // `*report` says all that is known of the flow
    kNothing,  // its flow is closed
    kLater,    // a frame that is still to come says what lies between: ask again
    kGarbled,  // an honest writer says no such thing
  };
  Result Read(const Record& record, FlowReport* report);
  // It came as a frame.
  void Heard(const FlowReport& report);

 private:
  struct Known {
    MessageId first = 0;
    std::deque<uint64_t> capacities;  // from `first` on
    std::deque<Place> places;
  };
  static void PlacedThrough(Known* known, MessageId through);
  // False: it contradicts what was said before.
  static bool Grant(Known* known, MessageId message, uint64_t capacity, const Place& place);
  // False, and it is forgotten: the flow is closed.
  bool IsOpen(FlowId flow);
  void ForgetIfEmpty(FlowId flow);

  const std::function<bool(FlowId)> is_open_;
  std::map<FlowId, Known> known_;
};

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_GRANT_RING_H_
