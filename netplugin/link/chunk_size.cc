#include "netplugin/link/chunk_size.h"

#include <algorithm>
#include <bit>

#include "netplugin/flow/tuning.h"
#include "netplugin/flow/types.h"

namespace r2cc::net {
namespace {

// NCCL's slices, a power of two, are then of equal chunks.
uint32_t PowerOfTwo(double bytes, double least, double most) {
  return std::bit_floor(static_cast<uint32_t>(std::clamp(bytes, least, most)));
}

// So that links that are alike share a message with as many chunks each: else some of them wait at its end for the others (512 KiB on three
// rails were four chunks of 128 KiB; three of 171 KiB end together). At most half as large again.
uint32_t Even(uint64_t message_bytes, uint32_t chunk_bytes, size_t links) {
  if (links == 0 || message_bytes <= chunk_bytes) return chunk_bytes;
  const uint64_t round_bytes = uint64_t{chunk_bytes} * links;
  const uint64_t rounds = std::max<uint64_t>(1, (message_bytes + round_bytes / 2) / round_bytes);
  const uint64_t chunks = rounds * links;
  const uint64_t bytes = (message_bytes + chunks - 1) / chunks;
  return static_cast<uint32_t>((bytes + kChunkAlignment - 1) / kChunkAlignment * kChunkAlignment);
}

}  // namespace

uint32_t ChunkBytesOf(const ChunkFacts& facts) {
  switch (facts.way) {
    case ChunkWay::kOneLink:
      return std::max(facts.base_bytes,
                      PowerOfTwo(facts.rate_bytes_per_s * tuning::kOwnChunkSeconds, tuning::kChunkBytesBase, tuning::kOwnChunkBytesMost));
    case ChunkWay::kNextLink: return facts.base_bytes;
    case ChunkWay::kAllLinks: {
      const double dealt = facts.slowest_bytes_per_s > 0 ? facts.slowest_bytes_per_s * tuning::kQueuedSeconds : tuning::kChunkBytesBase;
      return Even(facts.message_bytes,
                  std::min(facts.base_bytes, PowerOfTwo(dealt, tuning::kDealtChunkBytesLeast, tuning::kChunkBytesBase)), facts.links_alike);
    }
  }
  return facts.base_bytes;
}

}  // namespace r2cc::net
