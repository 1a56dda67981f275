// Of how many bytes the chunks of a message are. Pure.
#ifndef R2CC_NETPLUGIN_LINK_CHUNK_SIZE_H_
#define R2CC_NETPLUGIN_LINK_CHUNK_SIZE_H_

#include <cstddef>
#include <cstdint>

#include "netplugin/flow/tuning.h"

namespace r2cc::net {

// Who carries the message.
enum class ChunkWay {
  kOneLink,   // the flow's own link
  kNextLink,  // one link, but another than the flow's own
  kAllLinks,  // chunks are dealt out to all links
};

struct ChunkFacts {
  ChunkWay way = ChunkWay::kOneLink;
  uint64_t message_bytes = 0;
  uint32_t base_bytes = tuning::kChunkBytesBase;
  double rate_bytes_per_s = 0;     // of the flow's own link, while it is busy; 0: not known yet
  double slowest_bytes_per_s = 0;  // of all links, the slowest; 0: not known yet
  size_t links_alike = 0;          // how many links carry chunks, if all of them have the same weight; else 0
};

// A multiple of kChunkAlignment if `base_bytes` is one.
uint32_t ChunkBytesOf(const ChunkFacts& facts);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_CHUNK_SIZE_H_
