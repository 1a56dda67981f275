// Sends grants, acknowledgements and credit as 64-byte records that one end writes into the other's memory, where it is polled. Pure.
//
// A record is a state, not a step: its placed messages and its credit hold whenever it is read, and later records have more. The ring of an
// incarnation has kSlots. Record number 1, 2, 3, ... goes to slot number % kSlots, and may be written when the reader has read the record
// before it in that slot. The status slot next to the ring may be overwritten when the write before it is complete, and carries only
// credit.
//
// Layout, little-endian: number 4, flow 4, placed through 8, capacity 8, offset 8, next offset 8, region 4, generation 4, receives 4, read
// 4, kind 1, messages 1, ahead 1, zero 1, checksum 4: CRC-32C of the rest, exclusive-or the session's tag. A record that is half written,
// or garbled, is ignored. A grant is of one message, or of two that differ only in their offsets, like neighbours in a ring of buffers. So
// a steady flow takes one record for two messages, if the receiver grants two together.
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
// 8 KiB a link. Twice what one flow may have posted, so that a flow that posts all at once does not fill the ring. A power of two, because
// numbers wrap.
constexpr uint32_t kSlots = 128;
// How many messages one record grants.
constexpr uint32_t kMessagesPerRecord = 2;

enum class RecordKind : uint8_t { kCredit = 1, kAck = 2, kGrant = 3 };

struct Record {
  RecordKind kind = RecordKind::kCredit;
  uint32_t number = 0;    // 1, 2, 3, ... of the ring, or of the status slot; it wraps
  uint32_t receives = 0;  // total of receives that the writer has posted
  uint32_t read = 0;      // total of the other's ring records that the writer has read
  // kAck, kGrant:
  FlowId flow = 0;
  MessageId placed_through = 0;
  // kGrant:
  uint8_t messages = 0;  // 1 or 2
  MessageId message = 0;
  uint64_t capacity = 0;
  BufferPlace place;
  uint64_t next_offset = 0;  // of the second message; its other fields are the first one's

  friend bool operator==(const Record& a, const Record& b);
};

using RecordData = std::array<std::byte, kRecordBytes>;
RecordData Encode(const Record& record, uint32_t tag);
// False if it is no valid record.
bool Decode(std::span<const std::byte, kRecordBytes> bytes, uint32_t tag, Record* record);

// The granting end: turns a report into the records that the other end has not received on this link.
class GrantWriter {
 public:
  // Records without number and credit, at most `most`. Nothing: the report does not fit into records, because its keys have changed or it
  // needs more. Then send it as a frame, and call Sent().
  std::optional<std::vector<Record>> RecordsOf(const FlowReport& report, size_t most);
  // The report was sent as a frame.
  void Sent(const FlowReport& report);

 private:
  struct Granted {
    MessageId through = 0;           // granted on this link
    std::deque<BufferPlace> places;  // of the last messages of those
  };
  void Note(const FlowReport& report);

  std::map<FlowId, Granted> sent_;
};

// The other end.
class GrantReader {
 public:
  // `is_open`: the flow is still open here. Records of other flows are ignored.
  explicit GrantReader(std::function<bool(FlowId)> is_open) : is_open_(std::move(is_open)) {}

  enum class Result {
    kReport,   // `*report` has all that is known of the flow
    kNothing,  // its flow is closed
    kLater,    // a frame that has not come yet has the grants between: ask again
    kGarbled,  // no correct writer sends that
  };
  Result Read(const Record& record, FlowReport* report);
  // The report came as a frame.
  void Received(const FlowReport& report);

 private:
  struct Known {
    MessageId first = 0;
    std::deque<uint64_t> capacities;  // from `first` on
    std::deque<BufferPlace> places;
  };
  static void PlacedThrough(Known* known, MessageId through);
  // False: it contradicts an earlier record.
  static bool Grant(Known* known, MessageId message, uint64_t capacity, const BufferPlace& place);
  // False, and the flow is forgotten: it is closed.
  bool IsOpen(FlowId flow);
  void ForgetIfEmpty(FlowId flow);

  const std::function<bool(FlowId)> is_open_;
  std::map<FlowId, Known> known_;
};

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_GRANT_RING_H_
