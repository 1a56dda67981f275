// SipHash-2-4 (Aumasson, Bernstein): a keyed hash of short texts with 64 bits that nobody without the key can collide.
#ifndef R2CC_BASE_CORE_SIPHASH_H_
#define R2CC_BASE_CORE_SIPHASH_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace r2cc {

using SipKey = std::array<uint64_t, 2>;

inline uint64_t SipHash24(const SipKey& key, std::string_view text) {
  uint64_t v0 = key[0] ^ 0x736f6d6570736575, v1 = key[1] ^ 0x646f72616e646f6d;
  uint64_t v2 = key[0] ^ 0x6c7967656e657261, v3 = key[1] ^ 0x7465646279746573;
  const auto rounds = [&](int count) {
    for (int i = 0; i < count; ++i) {
      v0 += v1, v2 += v3;
      v1 = std::rotl(v1, 13) ^ v0, v3 = std::rotl(v3, 16) ^ v2;
      v0 = std::rotl(v0, 32);
      v2 += v1, v0 += v3;
      v1 = std::rotl(v1, 17) ^ v2, v3 = std::rotl(v3, 21) ^ v0;
      v2 = std::rotl(v2, 32);
    }
  };
  const auto take = [&](uint64_t word) {
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  };
  const size_t whole = text.size() / 8 * 8;
  for (size_t at = 0; at < whole; at += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + at, 8);
    take(word);
  }
  uint64_t last = static_cast<uint64_t>(text.size()) << 56;
  for (size_t at = whole; at < text.size(); ++at) last |= uint64_t{static_cast<unsigned char>(text[at])} << (8 * (at - whole));
  take(last);
  v2 ^= 0xff;
  rounds(4);
  return v0 ^ v1 ^ v2 ^ v3;
}

}  // namespace r2cc

#endif  // R2CC_BASE_CORE_SIPHASH_H_
