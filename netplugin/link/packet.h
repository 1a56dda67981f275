// What two plugin processes tell each other travels in packets: {magic, type, body bytes, checksum of the body} and the body. All numbers
// are little-endian; nothing that arrives is trusted. After the greeting a checksum is CRC-32C exclusive-or the session's tag,
// which only the two ends know: a packet that a stranger slips into a connection is garbage. Pure.
//
// Text goes into logs, records and tables: what is not printable ASCII is a '?' when it has been decoded. No daemon gives names with
// anything else, so such a name means no NIC of the page; a node that has one is not refused for it.
#ifndef R2CC_NETPLUGIN_LINK_PACKET_H_
#define R2CC_NETPLUGIN_LINK_PACKET_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/core/byte_reader.h"

namespace r2cc::net {

using Bytes = std::vector<uint8_t>;

// What the two ends of a session stamp their packets with.
uint32_t SessionTag(uint64_t nonce, uint64_t session);

// In one body. Of all packets only the answer to a fence would be larger: it travels in parts.
constexpr uint32_t kControlBodyBytesMax = 1u << 20;
constexpr size_t kPacketHeaderBytes = 16;
constexpr size_t kPacketBytesMax = kPacketHeaderBytes + kControlBodyBytesMax;

// Length of the packet at the head of `bytes` (header included), 0 if more bytes are needed to know, or a value over
// kPacketBytesMax if the head is not one of ours.
size_t PacketLength(std::span<const uint8_t> bytes);

// Of greetings, which carry the nonce itself.
constexpr uint32_t kNoTag = 0;

// Makes one packet.
class PacketWriter {
 public:
  explicit PacketWriter(uint16_t type);
  template <std::integral T>
  void Put(T value) {
    uint8_t raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    bytes_.insert(bytes_.end(), raw, raw + sizeof(T));
  }
  // At most 255 bytes of it.
  void Put(const std::string& text);
  void Put(const Bytes& bytes) { Put(std::string(bytes.begin(), bytes.end())); }
  // The whole packet.
  Bytes Finish(uint32_t tag);

 private:
  Bytes bytes_;
};

// Reads a body.
class PacketReader : public ByteReader {
 public:
  using ByteReader::ByteReader;
  Bytes GetBytes();
  // On one printable line.
  std::string GetString() { return TakeText(Get<uint8_t>()); }
};

// The body of a sound packet, and its type; false if magic, length or checksum are not right.
bool PacketBody(std::span<const uint8_t> packet, uint32_t tag, uint16_t* type, std::span<const uint8_t>* body);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_PACKET_H_
