#include "netplugin/link/frame_size.h"

namespace r2cc::net {

size_t WireBytes(const MessageArrivals& message) { return sizeof(MessageId) + 2 * sizeof(uint32_t) + (message.placed.size() + 7) / 8; }

size_t WireBytes(const FlowArrivals& flow) {
  size_t bytes = sizeof(FlowId) + sizeof(MessageId) + sizeof(uint32_t);
  for (const MessageArrivals& message : flow.partial) bytes += WireBytes(message);
  return bytes;
}

size_t WireBytes(const Region& region) {
  size_t bytes = sizeof(RegionId) + sizeof(uint32_t) + 2 * sizeof(uint64_t) + sizeof(uint16_t);
  for (const std::vector<RailEndpoint>& keys : region.keys) {
    bytes += sizeof(uint8_t);
    for (const RailEndpoint& key : keys) bytes += 2 * sizeof(uint8_t) + key.bytes.size();
  }
  return bytes;
}

size_t BodyBytes(const Frame& frame) {
  constexpr size_t kNamesBytes =
      sizeof(FlowId) + sizeof(LinkId) + sizeof(Incarnation) + sizeof(uint32_t) + sizeof(uint8_t) + sizeof(uint64_t) + sizeof(MessageId);
  constexpr size_t kCountsBytes = 2 * sizeof(uint32_t);
  const size_t part_bytes = frame.type == FrameType::kFenced ? 2 * sizeof(uint32_t) : 0;
  size_t bytes = kNamesBytes + part_bytes + kCountsBytes + frame.numbers.size() * sizeof(uint64_t);
  for (const FlowArrivals& flow : frame.arrivals) bytes += WireBytes(flow);
  if (frame.type == FrameType::kGrant)
    bytes += sizeof(uint32_t) + frame.places.size() * (sizeof(RegionId) + sizeof(uint32_t) + sizeof(uint64_t));
  if (frame.type == FrameType::kRegion) bytes += WireBytes(*frame.region);
  if (HasEndpoint(frame.type)) bytes += sizeof(uint8_t) + frame.endpoint.size();
  return bytes;
}

}  // namespace r2cc::net
