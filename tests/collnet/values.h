// What contributions hold, and hashes by which histories and results are told apart.
#ifndef R2CC_TESTS_COLLNET_VALUES_H_
#define R2CC_TESTS_COLLNET_VALUES_H_

#include <cstdint>

#include "netplugin/collnet/message.h"

namespace r2cc::collnet_test {

inline uint64_t Mix(uint64_t a, uint64_t b = 0, uint64_t c = 0) {
  uint64_t x = a * 0x9e3779b97f4a7c15 + b * 0xbf58476d1ce4e5b9 + c * 0x94d049bb133111eb + 1;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

inline uint64_t HashOf(const collnet::PlanSpec& spec) {
  uint64_t hash = Mix(static_cast<uint64_t>(spec.kind), spec.pieces_max, spec.piece_bytes);
  hash = Mix(hash, spec.degraded, Mix(spec.kept, spec.y));
  for (const uint32_t part : spec.parts) hash = Mix(hash, part);
  return hash;
}

inline uint64_t HashOf(const collnet::Bytes& bytes) {
  uint64_t hash = bytes.size();
  for (const std::byte byte : bytes) hash = (hash ^ static_cast<uint64_t>(byte)) * 0x100000001b3;
  return hash;
}

// The checker's symbols as numbers: a byte for each member says how often its contribution is in, and of every second element a number
// that no other element of any operation has.
inline uint64_t Symbol(uint64_t seed, uint32_t member, collnet::OperationId number, uint64_t element) {
  return element % 2 == 0 ? uint64_t{1} << (8 * member) : Mix(Mix(seed, member), number, element);
}

}  // namespace r2cc::collnet_test

#endif  // R2CC_TESTS_COLLNET_VALUES_H_
