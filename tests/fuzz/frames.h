// Control frames of a hostile peer that knows the format: any type, numbers near those that are in use, through the real encoding.
#ifndef R2CC_TESTS_FUZZ_FRAMES_H_
#define R2CC_TESTS_FUZZ_FRAMES_H_

#include <cstdint>
#include <iterator>
#include <memory>
#include <vector>

#include "base/core/check.h"
#include "netplugin/link/action.h"
#include "netplugin/link/frame.h"
#include "tests/fuzz/input.h"

namespace r2cc::fuzz {

// Small as a rule, any number now and then.
inline uint64_t TakeNear(Input* input, uint64_t base) {
  const uint8_t choice = input->Take<uint8_t>();
  if (choice >= 240) return input->TakeNumber();
  return base + choice % 8 - (choice >= 120 ? 4 : 0);
}

inline uint32_t TakeChunkBytes(Input* input) {
  constexpr uint32_t kSizes[] = {128, 256, 1024, 128 * 1024, 0, 127, 0xffffff80};
  return kSizes[input->Below(std::size(kSizes))];
}

inline std::vector<net::FlowArrivals> TakeArrivals(Input* input) {
  std::vector<net::FlowArrivals> all(input->Below(4));
  for (net::FlowArrivals& flow : all) {
    flow.flow = static_cast<net::FlowId>(TakeNear(input, 1));
    flow.placed_through = TakeNear(input, 0);
    flow.partial.resize(input->Below(4));
    for (net::MessageArrivals& partial : flow.partial) {
      partial.message = TakeNear(input, flow.placed_through);
      partial.chunk_bytes = TakeChunkBytes(input);
      partial.placed.resize(input->Below(20));
      for (size_t i = 0; i < partial.placed.size(); ++i) partial.placed[i] = input->TakeBool();
    }
  }
  return all;
}

// Of few regions, so that what is told is used.
inline net::Place TakePlace(Input* input) {
  const auto region = static_cast<net::RegionId>(input->Below(4));
  if (region == 0) return {};
  return {region, static_cast<uint32_t>(1 + input->Below(4)), TakeNear(input, 64)};
}

inline std::shared_ptr<const net::Region> TakeRegion(Input* input) {
  auto region = std::make_shared<net::Region>();
  region->id = static_cast<net::RegionId>(1 + input->Below(4));
  region->generation = static_cast<uint32_t>(1 + input->Below(4));
  region->base = input->Below(8) == 0 ? input->TakeNumber() : 4096;
  region->bytes = input->Below(8) == 0 ? input->TakeNumber() : 8192;
  region->keys.resize(input->Below(4));
  for (std::vector<net::RailEndpoint>& keys : region->keys)
    if (input->Below(4) != 0) keys.push_back({net::TransportKind::kTcp, {input->Take<uint8_t>()}});
  return region;
}

// Refusal ends a session, so it is rare.
inline net::ProbeResult TakeProbeResult(Input* input) {
  constexpr net::ProbeResult kReaches[] = {net::ProbeResult::kAnswers, net::ProbeResult::kSilent,  net::ProbeResult::kAnswers,
                                           net::ProbeResult::kSilent,  net::ProbeResult::kAnswers, net::ProbeResult::kSilent,
                                           net::ProbeResult::kSilent,  net::ProbeResult::kRefused};
  return kReaches[input->Below(std::size(kReaches))];
}

// False if nothing like it gets through the decoder.
inline bool TakeFrame(Input* input, net::Incarnation incarnation, net::MessageId message, net::Frame* frame) {
  net::Frame raw;
  raw.type = static_cast<net::FrameType>(1 + input->Below(static_cast<size_t>(net::FrameType::kRegionKnown)));
  raw.flow = static_cast<net::FlowId>(TakeNear(input, 1));
  raw.link = static_cast<net::LinkId>(TakeNear(input, 0));
  raw.incarnation = static_cast<net::Incarnation>(TakeNear(input, incarnation));
  raw.cause = static_cast<uint32_t>(TakeNear(input, 0));
  raw.ok = input->TakeBool();
  raw.number = TakeNear(input, 0);
  raw.message = TakeNear(input, message);
  raw.numbers.resize(input->Below(8));
  for (uint64_t& number : raw.numbers) number = input->TakeNumber();
  raw.arrivals = TakeArrivals(input);
  if (raw.type == net::FrameType::kGrant && input->TakeBool()) {
    raw.places.resize(raw.numbers.size());
    for (net::Place& place : raw.places) place = TakePlace(input);
  }
  if (raw.type == net::FrameType::kRegion) raw.region = TakeRegion(input);
  if (raw.type == net::FrameType::kFenced) {
    raw.parts = input->Below(8) == 0 ? static_cast<uint32_t>(input->TakeNumber()) : 1;
    raw.part = static_cast<uint32_t>(TakeNear(input, 0));
    if (raw.parts == 1) raw.part = 0;
  }
  constexpr uint32_t kTag = 7;
  return net::Decode(net::Encode(raw, kTag), kTag, frame);
}

}  // namespace r2cc::fuzz

#endif  // R2CC_TESTS_FUZZ_FRAMES_H_
