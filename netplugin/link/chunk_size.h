// The size of the chunks of a message. Pure.
#ifndef R2CC_NETPLUGIN_LINK_CHUNK_SIZE_H_
#define R2CC_NETPLUGIN_LINK_CHUNK_SIZE_H_

#include <cstdint>

namespace r2cc::net {

// Of a message of a flow. `rate_bytes_per_s`: of the link that carries all of it; 0: not known, or several carry it. A multiple of
// kChunkAlignment if `base_bytes` is one.
uint32_t ChunkBytesOf(uint32_t base_bytes, double rate_bytes_per_s);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_CHUNK_SIZE_H_
