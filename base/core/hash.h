// Hashes with fixed results: part of wire and page formats.
#ifndef R2CC_BASE_CORE_HASH_H_
#define R2CC_BASE_CORE_HASH_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace r2cc {

// FNV-1a, 64 bits: names of nodes and NICs in pages.
constexpr uint64_t Fnv1a64(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3ULL;
  }
  return hash;
}

// CRC-32C (Castagnoli), as in iSCSI: Crc32c("123456789", 9) == 0xe3069283.
// `seed` is the result over the bytes before, to continue a sum; 0 to begin one.
uint32_t Crc32c(const void* data, size_t bytes, uint32_t seed = 0);
// The same on any machine: what Crc32c() does where the processor has no instruction for it.
uint32_t Crc32cByTable(const void* data, size_t bytes, uint32_t seed = 0);

}  // namespace r2cc

#endif  // R2CC_BASE_CORE_HASH_H_
