// Computes the length of a frame on the wire without encoding it. Pure.
#ifndef R2CC_NETPLUGIN_LINK_FRAME_SIZE_H_
#define R2CC_NETPLUGIN_LINK_FRAME_SIZE_H_

#include <cstddef>

#include "netplugin/link/frames.h"

namespace r2cc::net {

// The bytes of a frame's packet body, and those that arrivals and a region take of it.
size_t BodyBytes(const Frame& frame);
size_t WireBytes(const MessageArrivals& message);
size_t WireBytes(const FlowArrivals& flow);
size_t WireBytes(const Region& region);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_FRAME_SIZE_H_
