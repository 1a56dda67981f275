// Packets of the wire with any body and a right length and checksum: what a hostile peer that knows the format sends.
#ifndef R2CC_TESTS_FUZZ_PACKETS_H_
#define R2CC_TESTS_FUZZ_PACKETS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "base/core/check.h"
#include "base/core/hash.h"
#include "netplugin/link/frame.h"

namespace r2cc::fuzz {

// Where a packet's header holds its type, the body's length and checksum.
constexpr size_t kTypeOffset = 4;
constexpr size_t kLengthOffset = 8;
constexpr size_t kChecksumOffset = 12;

inline void Seal(net::Bytes* packet) {
  R2CC_CHECK(packet->size() >= net::kPacketHeaderBytes);
  const auto body = static_cast<uint32_t>(packet->size() - net::kPacketHeaderBytes);
  const uint32_t checksum = Crc32c(packet->data() + net::kPacketHeaderBytes, body);
  std::memcpy(packet->data() + kLengthOffset, &body, sizeof(body));
  std::memcpy(packet->data() + kChecksumOffset, &checksum, sizeof(checksum));
}

// The tag of the session that these packets belong to; greetings have none.
constexpr uint32_t kNoTag = 0;

inline net::Bytes Encoded(const net::Hello& hello) { return net::Encode(hello); }
inline net::Bytes Encoded(const net::HelloReply& reply) { return net::Encode(reply); }
inline net::Bytes Encoded(const net::Frame& frame) { return net::Encode(frame, kNoTag); }

// A packet with another body.
inline net::Bytes WithBody(net::Bytes packet, std::span<const uint8_t> body) {
  const net::Bytes before = packet;
  Seal(&packet);
  R2CC_CHECK(packet == before);  // else the header's layout has changed, and nothing below it would be reached
  packet.resize(net::kPacketHeaderBytes);
  packet.insert(packet.end(), body.begin(), body.end());
  Seal(&packet);
  return packet;
}

// A packet of the type of `like` with another body.
template <typename Message>
net::Bytes WithBody(const Message& like, std::span<const uint8_t> body) {
  return WithBody(Encoded(like), body);
}
// A control frame of any type, as its number is on the wire.
inline net::Bytes FrameWithBody(uint16_t type, std::span<const uint8_t> body) {
  net::Bytes packet = Encoded(net::frames::Ping{});
  std::memcpy(packet.data() + kTypeOffset, &type, sizeof(type));
  return WithBody(std::move(packet), body);
}

constexpr size_t kBulkChecksumOffset = net::kBulkHeaderBytes - sizeof(uint32_t);

// A right checksum under whatever the header says.
inline void SealBulk(uint8_t (&header)[net::kBulkHeaderBytes]) {
  const uint32_t checksum = Crc32c(header, kBulkChecksumOffset);
  std::memcpy(header + kBulkChecksumOffset, &checksum, sizeof(checksum));
}

}  // namespace r2cc::fuzz

#endif  // R2CC_TESTS_FUZZ_PACKETS_H_
