#include "netplugin/link/frame.h"

#include <algorithm>
#include <concepts>
#include <cstring>
#include <type_traits>

#include "base/core/byte_reader.h"
#include "base/core/hash.h"

namespace r2cc::net {
namespace {

constexpr uint32_t kBulkMagic = 0x4b4c4232;  // "2BLK"
constexpr uint8_t kChecksummedFlag = 1;
constexpr uint8_t kEagerFlag = 2;
constexpr uint16_t kHelloType = 0x100;
constexpr uint16_t kHelloReplyType = 0x101;

void PutEndpoints(const std::vector<RailEndpoint>& endpoints, PacketWriter* out) {
  out->Put(static_cast<uint8_t>(endpoints.size()));
  for (const RailEndpoint& endpoint : endpoints) {
    out->Put(static_cast<uint8_t>(endpoint.transport));
    out->Put(endpoint.bytes);
  }
}

void PutRails(const std::vector<RailInfo>& rails, PacketWriter* out) {
  out->Put(static_cast<uint16_t>(rails.size()));
  for (const RailInfo& rail : rails) {
    out->Put(rail.nic);
    out->Put(static_cast<uint8_t>(rail.up));
    PutEndpoints(rail.endpoints, out);
  }
}

bool IsKnown(TransportKind transport) { return static_cast<uint8_t>(transport) < kTransportKinds; }
bool IsKnown(ConnectionKind kind) { return kind <= ConnectionKind::kLink; }

bool GetTransport(PacketReader* in, TransportKind* transport) {
  *transport = static_cast<TransportKind>(in->Get<uint8_t>());
  return IsKnown(*transport);
}

bool GetEndpoints(PacketReader* in, std::vector<RailEndpoint>* endpoints) {
  const auto count = in->Get<uint8_t>();
  if (count > kTransportKinds) return false;
  for (uint8_t i = 0; i < count && in->ok(); ++i) {
    RailEndpoint endpoint;
    if (!GetTransport(in, &endpoint.transport)) return false;
    const auto same = [&](const RailEndpoint& other) { return other.transport == endpoint.transport; };
    if (std::any_of(endpoints->begin(), endpoints->end(), same)) return false;
    endpoint.bytes = in->GetBytes();
    endpoints->push_back(std::move(endpoint));
  }
  return in->ok();
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

void PutPlaces(const std::vector<Place>& places, PacketWriter* out) {
  out->Put(static_cast<uint32_t>(places.size()));
  for (const Place& place : places) {
    out->Put(place.region);
    out->Put(place.generation);
    out->Put(place.offset);
  }
}

bool GetPlaces(PacketReader* in, size_t buffers, std::vector<Place>* places) {
  const auto count = in->Get<uint32_t>();
  if (count != 0 && count != buffers) return false;
  places->resize(count);
  for (Place& place : *places) {
    place.region = in->Get<RegionId>();
    place.generation = in->Get<uint32_t>();
    place.offset = in->Get<uint64_t>();
    if ((place.region == 0) != (place.generation == 0) || (place.region == 0 && place.offset != 0)) return false;
  }
  return in->ok();
}

void PutRegion(const Region& region, PacketWriter* out) {
  out->Put(region.id);
  out->Put(region.generation);
  out->Put(region.base);
  out->Put(region.bytes);
  out->Put(static_cast<uint16_t>(region.keys.size()));
  for (const std::vector<RailEndpoint>& keys : region.keys) PutEndpoints(keys, out);
}

bool GetRegion(PacketReader* in, Region* region) {
  region->id = in->Get<RegionId>();
  region->generation = in->Get<uint32_t>();
  region->base = in->Get<uint64_t>();
  region->bytes = in->Get<uint64_t>();
  const auto rails = in->Get<uint16_t>();
  if (region->id == 0 || region->generation == 0 || region->bytes > UINT64_MAX - region->base || rails > kWireRailsMax) return false;
  region->keys.resize(rails);
  for (std::vector<RailEndpoint>& keys : region->keys)
    if (!GetEndpoints(in, &keys)) return false;
  return in->ok();
}

void PutBits(const std::vector<bool>& bits, PacketWriter* out) {
  out->Put(static_cast<uint32_t>(bits.size()));
  uint8_t byte = 0;
  for (size_t i = 0; i < bits.size(); ++i) {
    if (bits[i]) byte = static_cast<uint8_t>(byte | 1u << (i % 8));
    if (i % 8 == 7 || i + 1 == bits.size()) {
      out->Put(byte);
      byte = 0;
    }
  }
}

bool GetBits(PacketReader* in, std::vector<bool>* bits) {
  const auto count = in->Get<uint32_t>();
  if (count > kChunksMax || (count + 7) / 8 > in->left()) return false;
  bits->resize(count);
  uint8_t byte = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (i % 8 == 0) byte = in->Get<uint8_t>();
    (*bits)[i] = (byte >> (i % 8) & 1) != 0;
  }
  return in->ok();
}

void PutArrivals(const std::vector<FlowArrivals>& all, PacketWriter* out) {
  out->Put(static_cast<uint32_t>(all.size()));
  for (const FlowArrivals& arrivals : all) {
    out->Put(arrivals.flow);
    out->Put(arrivals.placed_through);
    out->Put(static_cast<uint32_t>(arrivals.partial.size()));
    for (const MessageArrivals& partial : arrivals.partial) {
      out->Put(partial.message);
      out->Put(partial.chunk_bytes);
      PutBits(partial.placed, out);
    }
  }
}

bool GetArrivals(PacketReader* in, std::vector<FlowArrivals>* all) {
  const auto flows = in->Get<uint32_t>();
  if (flows > kFlowsMax) return false;
  for (uint32_t f = 0; f < flows && in->ok(); ++f) {
    FlowArrivals arrivals;
    arrivals.flow = in->Get<uint32_t>();
    arrivals.placed_through = in->Get<uint64_t>();
    const auto partials = in->Get<uint32_t>();
    for (uint32_t p = 0; p < partials && in->ok(); ++p) {
      MessageArrivals partial;
      partial.message = in->Get<uint64_t>();
      partial.chunk_bytes = in->Get<uint32_t>();
      if (!GetBits(in, &partial.placed)) return false;
      arrivals.partial.push_back(std::move(partial));
    }
    all->push_back(std::move(arrivals));
  }
  return in->ok();
}

// What stands in a packet is listed once, for both ways.
template <typename Each, typename T>
requires std::same_as<std::remove_const_t<T>, Hello>
void ForEachField(Each& each, T& hello) {
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

template <typename Each, typename T>
requires std::same_as<std::remove_const_t<T>, HelloReply>
void ForEachField(Each& each, T& reply) {
  each(reply.wire_version);
  each(reply.accepted);
  each(reply.reason);
  each(reply.node);
  each(reply.rails);
  if (reply.wire_version >= kWireVersionWithRelease) each(reply.release);
}

// Of its type's own parts those that are numbers.
template <typename Each, typename T>
requires std::same_as<std::remove_const_t<T>, Frame>
void ForEachField(Each& each, T& frame) {
  each(frame.flow);
  each(frame.link);
  each(frame.incarnation);
  each(frame.cause);
  each(frame.ok);
  each(frame.number);
  each(frame.message);
  if (frame.type != FrameType::kFenced) return;
  each(frame.part);
  each(frame.parts);
}

class Putter {
 public:
  explicit Putter(PacketWriter* out) : out_(out) {}
  void operator()(bool value) { out_->Put(static_cast<uint8_t>(value)); }
  void operator()(TransportKind value) { out_->Put(static_cast<uint8_t>(value)); }
  void operator()(ConnectionKind value) { out_->Put(static_cast<uint8_t>(value)); }
  void operator()(const std::vector<RailInfo>& rails) { PutRails(rails, out_); }
  void operator()(const auto& value) { out_->Put(value); }

 private:
  PacketWriter* const out_;
};

class Getter {
 public:
  explicit Getter(PacketReader* in) : in_(in) {}
  void operator()(bool& value) { value = in_->Get<uint8_t>() != 0; }
  template <typename T>
  requires std::is_enum_v<T>
  void operator()(T& value) {
    value = static_cast<T>(in_->Get<uint8_t>());
    if (!IsKnown(value)) in_->Fail();
  }
  template <std::integral T>
  void operator()(T& value) {
    value = in_->Get<T>();
  }
  void operator()(Bytes& value) { value = in_->GetBytes(); }
  void operator()(std::string& value) { value = in_->GetString(); }
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

Bytes Encode(const Frame& frame, uint32_t tag) {
  PacketWriter out(static_cast<uint16_t>(frame.type));
  Putter put(&out);
  ForEachField(put, frame);
  out.Put(static_cast<uint32_t>(frame.numbers.size()));
  for (uint64_t number : frame.numbers) out.Put(number);
  if (frame.type == FrameType::kGrant) PutPlaces(frame.places, &out);
  if (frame.type == FrameType::kRegion) PutRegion(*frame.region, &out);
  if (HasEndpoint(frame.type)) out.Put(frame.endpoint);
  PutArrivals(frame.arrivals, &out);
  return out.Finish(tag);
}

bool Decode(std::span<const uint8_t> packet, uint32_t tag, Frame* frame) {
  uint16_t type;
  std::span<const uint8_t> body;
  if (!PacketBody(packet, tag, &type, &body)) return false;
  if (type < static_cast<uint16_t>(FrameType::kFlowOpen) || type > static_cast<uint16_t>(FrameType::kLinkAnswer)) return false;
  PacketReader in(body);
  frame->type = static_cast<FrameType>(type);
  frame->part = 0;
  frame->parts = 1;
  Getter get(&in);
  ForEachField(get, *frame);
  if (frame->part >= frame->parts || frame->parts > kFencedPartsMax) return false;
  const auto count = in.Get<uint32_t>();
  if (!in.ok() || uint64_t{count} * 8 > in.left()) return false;
  frame->numbers.resize(count);
  for (uint64_t& number : frame->numbers) number = in.Get<uint64_t>();
  frame->places.clear();
  if (frame->type == FrameType::kGrant && !GetPlaces(&in, count, &frame->places)) return false;
  frame->region = nullptr;
  if (frame->type == FrameType::kRegion) {
    auto region = std::make_shared<Region>();
    if (!GetRegion(&in, region.get())) return false;
    frame->region = std::move(region);
  }
  frame->endpoint = HasEndpoint(frame->type) ? in.GetBytes() : Endpoint();
  return GetArrivals(&in, &frame->arrivals) && in.Done();
}

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
