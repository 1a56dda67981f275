#include "netplugin/link/frame.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/core/byte_reader.h"
#include "base/core/hash.h"
#include "netplugin/link/packet_fields.h"

namespace r2cc::net {
namespace {

constexpr uint32_t kBulkMagic = 0x4b4c4232;  // "2BLK"
constexpr uint8_t kChecksummedFlag = 1;
constexpr uint8_t kEagerFlag = 2;
constexpr uint16_t kHelloType = 0x100;
constexpr uint16_t kHelloReplyType = 0x101;

void PutRails(const std::vector<RailInfo>& rails, PacketWriter* out) {
  out->Put(static_cast<uint16_t>(rails.size()));
  for (const RailInfo& rail : rails) {
    out->Put(rail.nic);
    out->Put(static_cast<uint8_t>(rail.up));
    PutEndpoints(rail.endpoints, out);
  }
}

bool GetRails(PacketReader* in, std::vector<RailInfo>* rails) {
  const auto count = in->Get<uint16_t>();
  if (count > kWireRailsMax) return false;
  for (uint16_t i = 0; i < count && in->ok(); ++i) {
    RailInfo rail;
    rail.nic = in->GetString();
    rail.up = in->Get<uint8_t>() != 0;
    if (!GetEndpoints(in, &rail.endpoints)) return false;
    rails->push_back(std::move(rail));
  }
  return in->ok();
}

// What stands in a packet is listed once, for both ways.
void ForEachField(auto& each, Is<Hello> auto& hello) {
  each(hello.wire_least);
  each(hello.wire_newest);
  each(hello.kind);
  each(hello.nonce);
  each(hello.target_process);
  each(hello.session);
  each(hello.link);
  each(hello.local_rail);
  each(hello.remote_rail);
  each(hello.incarnation);
  each(hello.transport);
  each(hello.endpoint);
  each(hello.process);
  each(hello.node);
  each(hello.oob_address);
  each(hello.oob_port);
  each(hello.links);
  each(hello.rails);
  // A new field follows, with its own version: an older release ignores what follows the fields that it knows.
  if (hello.wire_newest >= kWireVersionWithRelease) each(hello.release);
}

void ForEachField(auto& each, Is<HelloReply> auto& reply) {
  each(reply.wire_version);
  each(reply.accepted);
  each(reply.reason);
  each(reply.node);
  each(reply.rails);
  if (reply.wire_version >= kWireVersionWithRelease) each(reply.release);
}

class Putter : public PutField {
 public:
  explicit Putter(PacketWriter* out) : PutField(out), out_(out) {}
  using PutField::operator();
  void operator()(const std::vector<RailInfo>& rails) { PutRails(rails, out_); }

 private:
  PacketWriter* const out_;
};

class Getter : public GetField {
 public:
  explicit Getter(PacketReader* in) : GetField(in), in_(in) {}
  using GetField::operator();
  void operator()(std::vector<RailInfo>& rails) {
    if (!GetRails(in_, &rails)) in_->Fail();
  }

 private:
  PacketReader* const in_;
};

template <typename T>
Bytes EncodeGreeting(uint16_t type, const T& greeting) {
  PacketWriter out(type);
  Putter put(&out);
  ForEachField(put, greeting);
  return out.Finish(kNoTag);
}

// A later release may append fields.
template <typename T>
bool DecodeGreeting(std::span<const uint8_t> packet, uint16_t expected, T* greeting) {
  uint16_t type;
  std::span<const uint8_t> body;
  if (!PacketBody(packet, kNoTag, &type, &body) || type != expected) return false;
  PacketReader in(body);
  Getter get(&in);
  ForEachField(get, *greeting);
  return in.ok();
}

}  // namespace

Bytes Encode(const Hello& hello) { return EncodeGreeting(kHelloType, hello); }
Bytes Encode(const HelloReply& reply) { return EncodeGreeting(kHelloReplyType, reply); }

bool Decode(std::span<const uint8_t> packet, Hello* hello) {
  return DecodeGreeting(packet, kHelloType, hello) && hello->links <= kLinksMax && hello->link < kLinksMax;
}

bool Decode(std::span<const uint8_t> packet, HelloReply* reply) { return DecodeGreeting(packet, kHelloReplyType, reply); }

void Encode(const BulkHeader& header, uint32_t tag, uint8_t (&out)[kBulkHeaderBytes]) {
  std::memset(out, 0, sizeof(out));
  const auto put = [&out](size_t offset, auto value) { std::memcpy(out + offset, &value, sizeof(value)); };
  put(0, kBulkMagic);
  put(4, static_cast<uint8_t>(header.type));
  put(5, static_cast<uint8_t>((header.checksummed ? kChecksummedFlag : 0) | (header.chunk.eager ? kEagerFlag : 0)));
  put(8, header.chunk.flow);
  put(12, header.chunk.index);
  put(16, header.chunk.message);
  put(24, header.chunk.message_bytes);
  put(32, header.chunk.chunk_bytes);
  put(36, header.chunk.bytes);
  put(40, header.payload_crc);
  put(44, Crc32c(out, 44) ^ tag);
}

bool Decode(const uint8_t (&bytes)[kBulkHeaderBytes], uint32_t tag, BulkHeader* header) {
  const std::span<const uint8_t> all(bytes);
  if (NumberAt<uint32_t>(all, 0) != kBulkMagic || NumberAt<uint32_t>(all, 44) != (Crc32c(bytes, 44) ^ tag)) return false;
  const uint8_t type = bytes[4];
  if (type != static_cast<uint8_t>(BulkType::kChunk) && type != static_cast<uint8_t>(BulkType::kProof)) return false;
  header->type = static_cast<BulkType>(type);
  header->checksummed = (bytes[5] & kChecksummedFlag) != 0;
  header->chunk.eager = (bytes[5] & kEagerFlag) != 0;
  header->chunk.flow = NumberAt<uint32_t>(all, 8);
  header->chunk.index = NumberAt<uint32_t>(all, 12);
  header->chunk.message = NumberAt<uint64_t>(all, 16);
  header->chunk.message_bytes = NumberAt<uint64_t>(all, 24);
  header->chunk.chunk_bytes = NumberAt<uint32_t>(all, 32);
  header->chunk.bytes = NumberAt<uint32_t>(all, 36);
  header->payload_crc = NumberAt<uint32_t>(all, 40);
  header->chunk.data = nullptr;
  return header->chunk.bytes <= kBulkBytesMax && header->chunk.message_bytes <= kMessageBytesMax;
}

uint32_t NegotiateVersion(uint32_t their_least, uint32_t their_newest) {
  const uint32_t newest = std::min(their_newest, kWireVersion);
  return newest >= std::max(their_least, kWireVersionLeast) ? newest : 0;
}

}  // namespace r2cc::net
