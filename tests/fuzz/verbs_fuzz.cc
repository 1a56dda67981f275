// What a peer's device writes into our memory, and what its process says of its queue pairs: immediates, tail records, records of the
// grant ring, offers. What is accepted keeps its promises, and encoded again it says the same.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/core/check.h"
#include "netplugin/transport/verbs/gid.h"
#include "netplugin/transport/verbs/grant_ring.h"
#include "netplugin/transport/verbs/offer.h"
#include "netplugin/transport/verbs/tail.h"
#include "tests/fuzz/input.h"

namespace {

using namespace r2cc;              // NOLINT
using namespace r2cc::net;         // NOLINT
using namespace r2cc::net::verbs;  // NOLINT

constexpr uint32_t kTag = 0x5eed;

// Garbage with a right checksum, as a peer that means harm would write it.
template <size_t kBytes>
std::array<std::byte, kBytes> Take(fuzz::Input* input) {
  std::array<std::byte, kBytes> bytes{};
  const auto some = input->TakeBytes(kBytes);
  if (!some.empty()) std::memcpy(bytes.data(), some.data(), some.size());
  return bytes;
}

void CheckTail(fuzz::Input input) {
  const uint32_t ticket = static_cast<uint32_t>(input.TakeNumber()) % kTickets;
  const ChunkMark mark = MarkOf(static_cast<uint32_t>(input.TakeNumber()));
  R2CC_CHECK(mark.ticket < kTickets && mark.chunk < kChunksMax);
  Tail tail{input.TakeNumber(), static_cast<uint32_t>(input.TakeNumber())};
  if (input.TakeBool()) tail.chunk_bytes = tail.chunk_bytes / kChunkAlignment * kChunkAlignment;
  auto bytes = Encode(tail, ticket, kTag);
  if (input.TakeBool()) bytes = Take<kTailBytes>(&input);
  Tail got;
  Chunk header;
  if (Decode(bytes, ticket, kTag, &got) && HeaderOf(mark, 1, 2, got, &header)) {
    R2CC_CHECK(header.message_bytes <= kMessageBytesMax && header.chunk_bytes % kChunkAlignment == 0);
    R2CC_CHECK(header.offset() + header.bytes <= header.message_bytes && header.bytes <= header.chunk_bytes);
    R2CC_CHECK(Encode(got, ticket, kTag) == bytes);
  }
  if (HeaderOf(mark, 1, 2, static_cast<uint32_t>(input.TakeNumber()), &header))
    R2CC_CHECK(header.bytes == header.message_bytes && header.bytes <= header.chunk_bytes && header.offset() == 0);
}

Record TakeRecord(fuzz::Input* input) {
  Record record;
  record.kind = static_cast<RecordKind>(input->Below(5));
  record.number = 1 + input->Take<uint8_t>();
  record.flow = static_cast<FlowId>(input->Below(3));
  record.placed_through = input->Below(16) == 0 ? input->TakeNumber() : input->Take<uint8_t>();
  record.messages = static_cast<uint8_t>(input->Below(4));
  record.message = record.kind == RecordKind::kGrant ? record.placed_through + input->Below(kMessagesPerFlow + 1) : 0;
  record.capacity = input->TakeNumber();
  record.place = {static_cast<net::RegionId>(input->Below(3)), static_cast<uint32_t>(input->Below(3)), input->TakeNumber()};
  record.next_offset = input->TakeNumber();
  return record;
}

void CheckRing(fuzz::Input input) {
  GrantReader reader([](FlowId flow) { return flow != 2; });
  while (!input.empty()) {
    RecordData data = Encode(TakeRecord(&input), kTag);
    if (input.Below(4) == 0) data[input.Below(kRecordBytes)] = static_cast<std::byte>(input.Take<uint8_t>());
    Record record;
    if (!Decode(data, kTag, &record)) continue;
    R2CC_CHECK(Encode(record, kTag) == data);
    FlowReport report;
    switch (reader.Read(record, &report)) {
      case GrantReader::Result::kReport:
        R2CC_CHECK(report.grants || report.capacities.empty());
        R2CC_CHECK(report.places.empty() || report.places.size() == report.capacities.size());
        R2CC_CHECK(report.flow == record.flow && report.placed_through >= record.placed_through);
        break;
      case GrantReader::Result::kNothing: R2CC_CHECK(record.flow == 2); break;
      case GrantReader::Result::kLater: break;
      case GrantReader::Result::kGarbled: return;
    }
    if (input.Below(4) == 0) {
      FlowReport grant{.flow = record.flow, .placed_through = input.Take<uint8_t>(), .grants = true};
      grant.capacities.resize(input.Below(70), 5);
      reader.Received(grant);
    }
  }
}

void CheckOffers(fuzz::Input input) {
  Endpoint bytes = Encode(Offer{.number = static_cast<uint32_t>(input.TakeNumber()), .mtu_bytes = 1024});
  if (input.TakeBool())
    bytes.assign(input.rest().begin(), input.rest().end());
  else
    for (size_t changes = input.Below(4); changes > 0; --changes) bytes[input.Below(bytes.size())] = input.Take<uint8_t>();
  Offer offer;
  RailAddress address;
  uint32_t key = 0;
  if (Decode(bytes, &offer)) R2CC_CHECK(Encode(offer) == bytes && offer.number < 1u << 24 && offer.psn < 1u << 24);
  if (Decode(bytes, &address)) R2CC_CHECK(Encode(address) == bytes);
  if (DecodeKey(bytes, &key)) R2CC_CHECK(EncodeKey(key) == bytes);
  R2CC_CHECK(!TextOf(offer.address.gid).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  switch (input.Below(3)) {
    case 0: CheckTail(input); break;
    case 1: CheckRing(input); break;
    default: CheckOffers(input); break;
  }
  return 0;
}
