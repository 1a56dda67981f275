// Which frames are told again by whoever said them, until they are answered. A channel whose other end reads nothing - for a day, if its
// process is stopped - may drop these, so that it costs no memory. Pure.
#ifndef R2CC_NETPLUGIN_LINK_REPEATED_H_
#define R2CC_NETPLUGIN_LINK_REPEATED_H_

#include "netplugin/link/frame.h"

namespace r2cc::net {

constexpr bool IsRepeatedAnyway(FrameType type) {
  switch (type) {
    case FrameType::kPing:
    case FrameType::kPong:
    case FrameType::kFlowOpen:
    case FrameType::kFlowEnd:
    case FrameType::kBye:
    case FrameType::kFence:
    case FrameType::kFenced: return true;
    default: return false;
  }
}

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_REPEATED_H_
