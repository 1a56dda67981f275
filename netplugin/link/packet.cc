#include "netplugin/link/packet.h"

#include <algorithm>
#include <utility>

#include "base/core/hash.h"

namespace r2cc::net {
namespace {

constexpr uint32_t kPacketMagic = 0x32435232;  // "2RC2"
constexpr size_t kStringBytesMax = 255;
constexpr size_t kPacketBytesUsual = 96;

}  // namespace

uint32_t SessionTag(uint64_t nonce, uint64_t session) {
  const uint64_t both[2] = {nonce, session};
  return Crc32c(both, sizeof(both));
}

size_t PacketLength(std::span<const uint8_t> bytes) {
  if (bytes.size() < kPacketHeaderBytes) {
    // A stranger is refused at the first bytes, not after a header's worth.
    const size_t known = std::min<size_t>(bytes.size(), 4);
    return known == 0 || std::memcmp(bytes.data(), &kPacketMagic, known) == 0 ? 0 : kPacketBytesMax + 1;
  }
  if (NumberAt<uint32_t>(bytes, 0) != kPacketMagic) return kPacketBytesMax + 1;
  const auto body = NumberAt<uint32_t>(bytes, 8);
  return body > kControlBodyBytesMax ? kPacketBytesMax + 1 : kPacketHeaderBytes + body;
}

bool PacketBody(std::span<const uint8_t> packet, uint32_t tag, uint16_t* type, std::span<const uint8_t>* body) {
  if (packet.size() < kPacketHeaderBytes || PacketLength(packet) != packet.size()) return false;
  *type = NumberAt<uint16_t>(packet, 4);
  *body = packet.subspan(kPacketHeaderBytes);
  return (Crc32c(body->data(), body->size()) ^ tag) == NumberAt<uint32_t>(packet, 12);
}

PacketWriter::PacketWriter(uint16_t type) {
  bytes_.reserve(kPacketBytesUsual);
  Put(kPacketMagic);
  Put(type);
  Put(uint16_t{0});
  Put(uint32_t{0});  // body bytes
  Put(uint32_t{0});  // checksum
}

void PacketWriter::Put(const std::string& text) {
  const size_t length = std::min(text.size(), kStringBytesMax);
  Put(static_cast<uint8_t>(length));
  bytes_.insert(bytes_.end(), text.begin(), text.begin() + static_cast<ptrdiff_t>(length));
}

Bytes PacketWriter::Finish(uint32_t tag) {
  const auto body = static_cast<uint32_t>(bytes_.size() - kPacketHeaderBytes);
  const uint32_t crc = Crc32c(bytes_.data() + kPacketHeaderBytes, body) ^ tag;
  std::memcpy(bytes_.data() + 8, &body, 4);
  std::memcpy(bytes_.data() + 12, &crc, 4);
  return std::move(bytes_);
}

Bytes PacketReader::GetBytes() {
  const std::span<const uint8_t> raw = Take(Get<uint8_t>());
  return Bytes(raw.begin(), raw.end());
}

}  // namespace r2cc::net
