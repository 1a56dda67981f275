// Control frames of a hostile peer that knows the format: any type, numbers near those that are in use, through the real encoding.
#ifndef R2CC_TESTS_FUZZ_FRAMES_H_
#define R2CC_TESTS_FUZZ_FRAMES_H_

#include <cstdint>
#include <iterator>
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

// Refusal ends a session, so it is rare.
inline net::Reach TakeReach(Input* input) {
  constexpr net::Reach kReaches[] = {net::Reach::kAnswers, net::Reach::kSilent, net::Reach::kAnswers, net::Reach::kSilent,
                                     net::Reach::kAnswers, net::Reach::kSilent, net::Reach::kSilent,  net::Reach::kRefused};
  return kReaches[input->Below(std::size(kReaches))];
}

// False if nothing like it gets through the decoder.
inline bool TakeFrame(Input* input, net::Incarnation incarnation, net::MessageId message, net::Frame* frame) {
  net::Frame raw;
  raw.type = static_cast<net::FrameType>(1 + input->Below(static_cast<size_t>(net::FrameType::kWant)));
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
