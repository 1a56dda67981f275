#include "netplugin/link/chunk_size.h"

#include <algorithm>
#include <bit>

#include "netplugin/flow/tuning.h"

namespace r2cc::net {

// A power of two: NCCL's slices are then of equal chunks.
uint32_t ChunkBytesOf(uint32_t base_bytes, double rate_bytes_per_s) {
  const double bytes = rate_bytes_per_s * tuning::kOwnChunkSeconds;
  return std::max(base_bytes, std::bit_floor(static_cast<uint32_t>(std::min<double>(bytes, tuning::kOwnChunkBytesMost))));
}

}  // namespace r2cc::net
