#include "netplugin/link/frame_size.h"

#include <variant>

#include "base/core/overloaded.h"

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
  constexpr size_t kPlaceBytes = sizeof(RegionId) + sizeof(uint32_t) + sizeof(uint64_t);
  const size_t own_bytes = std::visit(Overloaded{
                                          [](const FlowReport& report) {
                                            const size_t places_bytes =
                                                report.grants ? sizeof(uint32_t) + report.places.size() * kPlaceBytes : 0;
                                            return report.capacities.size() * sizeof(uint64_t) + places_bytes;
                                          },
                                          [](const frames::Fenced& fenced) {
                                            size_t bytes = 2 * sizeof(uint32_t);
                                            for (const FlowArrivals& flow : fenced.arrivals) bytes += WireBytes(flow);
                                            return bytes;
                                          },
                                          [](const frames::RegionAnnounced& announced) { return WireBytes(*announced.region); },
                                          [](const frames::LinkOffer& offer) { return sizeof(uint8_t) + offer.endpoint.size(); },
                                          [](const frames::LinkAnswer& answer) { return sizeof(uint8_t) + answer.endpoint.size(); },
                                          [](const auto&) { return size_t{0}; },
                                      },
                                      frame);
  return kNamesBytes + kCountsBytes + own_bytes;
}

}  // namespace r2cc::net
