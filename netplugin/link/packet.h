// Frames and checks the packets between two plugin processes: {magic, type, body bytes, checksum of the body} and the body. All numbers are
// little-endian; nothing that arrives is trusted. After the greeting a checksum is CRC-32C exclusive-or the session's tag, which only the
// two ends know: a packet that an outsider injects into a connection fails the check. Pure.
//
// Decoded text goes into logs, records and tables, so each character that is not printable ASCII becomes a '?'. Daemons give only printable
// names, so a name with a '?' matches no NIC of the page; a node that has one is not refused for it.
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

// The tag with which the two ends of a session stamp their packets.
uint32_t SessionTag(uint64_t nonce, uint64_t session);

// The limit of one body. Only the answer to a fence could be larger: it travels in parts.
constexpr uint32_t kControlBodyBytesMax = 1u << 20;
constexpr size_t kPacketHeaderBytes = 16;
constexpr size_t kPacketBytesMax = kPacketHeaderBytes + kControlBodyBytesMax;

// Length of the packet at the head of `bytes` (header included), 0 if more bytes are needed to know, or a value over kPacketBytesMax if the
// head is not one of ours.
size_t PacketLength(std::span<const uint8_t> bytes);

// The tag of greetings, which carry the nonce itself.
constexpr uint32_t kNoTag = 0;

// Encodes one packet.
class PacketWriter {
 public:
  explicit PacketWriter(uint16_t type);
  template <std::integral T>
  void Put(T value) {
    uint8_t raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    bytes_.insert(bytes_.end(), raw, raw + sizeof(T));
  }
  // At most the first 255 bytes.
  void Put(const std::string& text);
  void Put(const Bytes& bytes) { Put(std::string(bytes.begin(), bytes.end())); }
  // The whole packet.
  Bytes Finish(uint32_t tag);

 private:
  Bytes bytes_;
};

// Decodes a body.
class PacketReader : public ByteReader {
 public:
  using ByteReader::ByteReader;
  Bytes GetBytes();
  // The text on one printable line.
  std::string GetString() { return TakeText(Get<uint8_t>()); }
};

// The body of a valid packet, and its type; false if magic, length or checksum are wrong.
bool PacketBody(std::span<const uint8_t> packet, uint32_t tag, uint16_t* type, std::span<const uint8_t>* body);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_PACKET_H_
