// Lists the frames that are repeated until they are answered, and their answers. A channel may drop these while its other end reads
// nothing: a process may be stopped for a day, and must cost no memory meanwhile and no time afterwards. Pure.
#ifndef R2CC_NETPLUGIN_LINK_REPEATED_H_
#define R2CC_NETPLUGIN_LINK_REPEATED_H_

#include <variant>

#include "netplugin/link/frames.h"

namespace r2cc::net {

constexpr bool IsRepeatedAnyway(FrameType type) {
  switch (type) {
    case FrameType::kPing:
    case FrameType::kPong:
    case FrameType::kFlowOpen:
    case FrameType::kFlowOpened:
    case FrameType::kFlowEnd:
    case FrameType::kFlowEnded:
    case FrameType::kBye:
    case FrameType::kByeAck:
    case FrameType::kFence:
    case FrameType::kFenced:
    case FrameType::kFencedAck:
    case FrameType::kRegion:
    case FrameType::kRegionKnown: return true;
    default: return false;
  }
}

// False: the first part has decided whether the frame is sent. The parts of one answer are all sent or all dropped.
inline bool IsFirstPart(const Frame& frame) {
  const auto* const fenced = std::get_if<frames::Fenced>(&frame);
  return fenced == nullptr || fenced->part == 0;
}

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_REPEATED_H_
