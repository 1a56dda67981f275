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
inline net::BufferPlace TakePlace(Input* input) {
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

// What the fields of a frame are taken from, whichever of them its type has: hostile peers' numbers near those in use.
struct FrameSource {
  Input* input;
  net::Incarnation incarnation;
  net::MessageId message;

  net::FlowId flow() { return static_cast<net::FlowId>(TakeNear(input, 1)); }
  net::LinkId link() { return static_cast<net::LinkId>(TakeNear(input, 0)); }
  net::Incarnation near_incarnation() { return static_cast<net::Incarnation>(TakeNear(input, incarnation)); }
  uint32_t cause() { return static_cast<uint32_t>(TakeNear(input, 0)); }
  uint64_t number() { return TakeNear(input, 0); }
  net::MessageId near_message() { return TakeNear(input, message); }
};

inline net::FlowReport TakeReport(FrameSource from, bool grants) {
  net::FlowReport report{.flow = from.flow(), .placed_through = from.near_message(), .grants = grants};
  if (!grants) return report;
  report.capacities.resize(from.input->Below(8));
  for (uint64_t& capacity : report.capacities) capacity = from.input->TakeNumber();
  if (!from.input->TakeBool()) return report;
  report.places.resize(report.capacities.size());
  for (net::BufferPlace& place : report.places) place = TakePlace(from.input);
  return report;
}

inline net::frames::Fenced TakeFenced(FrameSource from) {
  net::frames::Fenced fenced{.link = from.link(), .incarnation = from.near_incarnation(), .cause = from.cause(), .answer = from.number()};
  fenced.parts = from.input->Below(8) == 0 ? static_cast<uint32_t>(from.input->TakeNumber()) : 1;
  fenced.part = fenced.parts == 1 ? 0 : static_cast<uint32_t>(TakeNear(from.input, 0));
  fenced.arrivals = TakeArrivals(from.input);
  return fenced;
}

inline net::Frame TakeAnyFrame(FrameSource from) {
  namespace frames = net::frames;
  using net::FrameType;
  switch (static_cast<FrameType>(1 + from.input->Below(static_cast<size_t>(FrameType::kRegionKnown)))) {
    case FrameType::kFlowOpen: return frames::FlowOpen{from.flow(), from.number(), from.cause()};
    case FrameType::kFlowOpened: return frames::FlowOpened{from.flow(), from.input->TakeBool(), from.cause(), from.number()};
    case FrameType::kGrant: return TakeReport(from, true);
    case FrameType::kAck: return TakeReport(from, false);
    case FrameType::kFence: return frames::Fence{from.link(), from.near_incarnation(), from.cause()};
    case FrameType::kFenced: return TakeFenced(from);
    case FrameType::kFencedAck: return frames::FencedAck{from.link(), from.near_incarnation()};
    case FrameType::kProved: return frames::Proved{from.link(), from.near_incarnation(), from.input->TakeBool()};
    case FrameType::kPing: return frames::Ping{from.number()};
    case FrameType::kPong: return frames::Pong{from.number()};
    case FrameType::kFlowEnd: return frames::FlowEnd{from.flow()};
    case FrameType::kFlowEnded: return frames::FlowEnded{from.flow()};
    case FrameType::kBye: return frames::Bye{from.flow(), from.near_message()};
    case FrameType::kByeAck: return frames::ByeAck{from.flow()};
    case FrameType::kRailUp: return frames::RailUp{from.number()};
    case FrameType::kWant: return frames::Want{from.flow(), from.near_message()};
    case FrameType::kRegion: return frames::RegionAnnounced{TakeRegion(from.input)};
    case FrameType::kRegionKnown: return frames::RegionKnown{from.number(), from.near_incarnation()};
    case FrameType::kLinkOffer:
    case FrameType::kLinkAnswer: break;  // the peers', not the sessions'
  }
  return frames::Ping{};
}

// False if nothing like it gets through the decoder.
inline bool TakeFrame(Input* input, net::Incarnation incarnation, net::MessageId message, net::Frame* frame) {
  constexpr uint32_t kTag = 7;
  return net::Decode(net::Encode(TakeAnyFrame({input, incarnation, message}), kTag), kTag, frame);
}

}  // namespace r2cc::fuzz

#endif  // R2CC_TESTS_FUZZ_FRAMES_H_
