// Defines the identifiers, limits and small values that flows and links share.
#ifndef R2CC_NETPLUGIN_FLOW_TYPES_H_
#define R2CC_NETPLUGIN_FLOW_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "netplugin/flow/memory.h"

namespace r2cc::net {

using FlowId = uint32_t;       // unique in a session
using MessageId = uint64_t;    // 0, 1, 2, ... in each flow, in the order of isend and irecv
using RailSet = uint32_t;      // a bit for each of a process's rails
using LinkId = uint16_t;       // index in a session
using Incarnation = uint32_t;  // 1, 2, 3, ... in each link
// One incarnation of one link, as the ledgers name it: the path on which a chunk is in flight.
using PathEpoch = uint16_t;

constexpr RailSet kAllRails = ~RailSet{0};
constexpr LinkId kLinksMax = 64;
constexpr uint32_t kFlowsMax = 65'536;
constexpr uint64_t kMessageBytesMax = uint64_t{1} << 40;  // NCCL's own limit for one operation
constexpr uint32_t kChunksMax = 8192;                     // in a message
constexpr uint32_t kChunkAlignment = 128;                 // LL128 lines must never be split between rails

// The eager path: a small message is copied, reported done at once, and may arrive before its buffer was posted.
constexpr uint32_t kEagerBytesMax = 64 * 1024;
// How many messages beyond the last acknowledged one may take the eager path: what a receiver must be able to stage for one flow.
constexpr uint32_t kEagerWindow = 32;
// From this many messages in flight on, the window is low: an acknowledgement of half of it should have come. The sender then looks for the
// acknowledgement now, and the receiver does not delay it.
constexpr uint32_t EagerWindowLowAt(uint32_t window) { return window * 3 / 4; }

// A piece of a message: the unit that is striped, acknowledged and replayed. `data` points into NCCL's buffer.
struct Chunk {
  FlowId flow = 0;
  MessageId message = 0;
  uint64_t message_bytes = 0;
  uint32_t chunk_bytes = 0;  // of all chunks of the message but the last
  uint32_t index = 0;
  const std::byte* data = nullptr;
  uint32_t bytes = 0;
  bool eager = false;              // the sender does not wait for the acknowledgement, and need not have waited for the grant
  const Memory* memory = nullptr;  // the memory that has `data`, if a transport has to know; not sent

  uint64_t offset() const { return uint64_t{index} * chunk_bytes; }
};

// Size of the chunks of a message: `base_bytes`, or more where a message would have more than kChunksMax chunks; a multiple of
// kChunkAlignment.
constexpr uint32_t ChunkBytesFor(uint64_t message_bytes, uint32_t base_bytes) {
  uint64_t least = (message_bytes + kChunksMax - 1) / kChunksMax;
  least = (least + kChunkAlignment - 1) / kChunkAlignment * kChunkAlignment;
  return static_cast<uint32_t>(least > base_bytes ? least : base_bytes);
}

// A zero-byte message has one chunk of no bytes: it too must be delivered exactly once.
constexpr uint32_t ChunkCount(uint64_t message_bytes, uint32_t chunk_bytes) {
  return message_bytes == 0 ? 1 : static_cast<uint32_t>((message_bytes + chunk_bytes - 1) / chunk_bytes);
}

constexpr uint32_t ChunkLength(uint64_t message_bytes, uint32_t chunk_bytes, uint32_t index) {
  const uint64_t left = message_bytes - uint64_t{index} * chunk_bytes;
  return static_cast<uint32_t>(left < chunk_bytes ? left : chunk_bytes);
}

// Names a flush: data that came by one path into GPU memory is to become visible to the GPU. If more comes by that path, it is flushed
// again in the next round.
struct FlushName {
  FlowId flow = 0;
  MessageId message = 0;
  uint32_t round = 0;

  friend bool operator==(const FlushName&, const FlushName&) = default;
};

// The chunks that a receiver has of one message that is not whole yet, or is whole ahead of its turn.
struct MessageArrivals {
  MessageId message = 0;
  uint32_t chunk_bytes = 0;
  std::vector<bool> placed;  // by chunk index
};

// The messages that a receiver has of one flow: everything below `placed_through`, and parts of some messages from there on.
struct FlowArrivals {
  FlowId flow = 0;
  MessageId placed_through = 0;
  std::vector<MessageArrivals> partial;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_FLOW_TYPES_H_
