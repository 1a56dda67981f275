// Everything that the first bytes of a connection and a control channel may hold: greetings, replies, control frames. What is accepted
// keeps its promises, and encoded again it says the same.
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "netplugin/link/frame_size.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/packets.h"

namespace {

using namespace r2cc;       // NOLINT
using namespace r2cc::net;  // NOLINT

void Printable(const std::string& text) {
  for (const char c : text) R2CC_CHECK(c >= 0x20 && c <= 0x7e);
}
void Printable(const std::vector<RailInfo>& rails) {
  for (const RailInfo& rail : rails) Printable(rail.nic);
}

void Limits(const Hello& hello) {
  Printable(hello.node);
  Printable(hello.oob_address);
  Printable(hello.rails);
  R2CC_CHECK(hello.links <= kLinksMax && hello.link < kLinksMax && hello.rails.size() <= kWireRailsMax);
  R2CC_CHECK(hello.kind <= ConnectionKind::kLink);
}
void Limits(const HelloReply& reply) {
  Printable(reply.reason);
  Printable(reply.node);
  Printable(reply.rails);
  R2CC_CHECK(reply.rails.size() <= kWireRailsMax);
}
void Limits(const FlowReport& report) {
  R2CC_CHECK(report.grants || report.capacities.empty());
  R2CC_CHECK(report.places.empty() || report.places.size() == report.capacities.size());
  for (const BufferPlace& place : report.places) R2CC_CHECK((place.region == 0) == (place.generation == 0));
}
void Limits(const frames::Fenced& fenced) {
  R2CC_CHECK(fenced.arrivals.size() <= kFlowsMax && fenced.part < fenced.parts && fenced.parts <= kFencedPartsMax);
  for (const FlowArrivals& flow : fenced.arrivals)
    for (const MessageArrivals& partial : flow.partial) R2CC_CHECK(partial.placed.size() <= kChunksMax);
}
void Limits(const frames::RegionAnnounced& announced) {
  R2CC_CHECK(announced.region != nullptr);
  const Region& region = *announced.region;
  R2CC_CHECK(region.id != 0 && region.generation != 0 && region.base + region.bytes >= region.base);
  R2CC_CHECK(region.keys.size() <= kWireRailsMax);
  for (const std::vector<RailEndpoint>& keys : region.keys) R2CC_CHECK(keys.size() <= kTransportKinds);
}
// The others are numbers, of which any will do.
template <typename Other>
void Limits(const Other&) {}
void Limits(const Frame& frame) {
  std::visit([](const auto& of) { Limits(of); }, frame);
}

void CheckSize(const Hello&, const Bytes&) {}
void CheckSize(const HelloReply&, const Bytes&) {}
void CheckSize(const Frame& frame, const Bytes& packet) { R2CC_CHECK(packet.size() == kPacketHeaderBytes + BodyBytes(frame)); }

bool Decoded(std::span<const uint8_t> packet, Hello* hello) { return Decode(packet, hello); }
bool Decoded(std::span<const uint8_t> packet, HelloReply* reply) { return Decode(packet, reply); }
bool Decoded(std::span<const uint8_t> packet, Frame* frame) { return Decode(packet, fuzz::kNoTag, frame); }

template <typename Message>
void Check(std::span<const uint8_t> packet) {
  Message message;
  if (!Decoded(packet, &message)) return;
  Limits(message);
  const Bytes again = fuzz::Encoded(message);
  CheckSize(message, again);
  R2CC_CHECK(PacketLength(again) == again.size());
  Message twice;
  R2CC_CHECK(Decoded(again, &twice));
  R2CC_CHECK(fuzz::Encoded(twice) == again);
}

// A frame of one session is no frame of another.
void CheckTag(std::span<const uint8_t> packet, uint32_t tag) {
  Frame frame;
  if (tag == fuzz::kNoTag || !Decode(packet, fuzz::kNoTag, &frame)) return;
  Frame other;
  R2CC_CHECK(!Decode(packet, tag, &other) && !Decode(Encode(frame, tag), fuzz::kNoTag, &other) && Decode(Encode(frame, tag), tag, &other));
}

void CheckAll(std::span<const uint8_t> packet) {
  Check<Hello>(packet);
  Check<HelloReply>(packet);
  Check<Frame>(packet);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const size_t choice = input.Below(4);
  switch (choice) {
    case 0: {
      const size_t length = PacketLength(input.rest());
      R2CC_CHECK(length == 0 || length >= kPacketHeaderBytes);
      CheckAll(input.rest());
      break;
    }
    case 1: CheckAll(fuzz::WithBody(Hello{}, input.rest())); break;
    case 2: CheckAll(fuzz::WithBody(HelloReply{}, input.rest())); break;
    default: {
      const auto type = input.Take<uint16_t>();
      const auto tag = static_cast<uint32_t>(input.TakeNumber());
      const Bytes packet = fuzz::FrameWithBody(type, input.rest());
      CheckAll(packet);
      CheckTag(packet, tag);
      break;
    }
  }
  return 0;
}
