#include "tools/perf/random_values.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace r2cc::perf {
namespace {

using abi::DataType;

struct Format {
  int bytes;
  int mantissa_bits;
  int bias;
};

constexpr Format FormatOf(DataType type) {
  switch (type) {
    case DataType::kFloat16: return {2, 10, 15};
    case DataType::kBfloat16: return {2, 7, 127};
    default: return {4, 23, 127};
  }
}

// The finalizer of SplitMix64.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// From 2^-7 up to 2: the sum of 4096 ranks is within what float16 has.
uint32_t BitsAt(const Format& format, uint64_t seed, int rank, int64_t index) {
  const uint64_t random = Mix(Mix(seed + static_cast<uint64_t>(rank) * 0x9E3779B97F4A7C15u) + static_cast<uint64_t>(index));
  const auto mantissa = static_cast<uint32_t>(random) & ((1u << format.mantissa_bits) - 1);
  const auto exponent = static_cast<uint32_t>(format.bias - static_cast<int>(random >> 32 & 7));
  const auto sign = static_cast<uint32_t>(random >> 63);
  return sign << (8 * format.bytes - 1) | exponent << format.mantissa_bits | mantissa;
}

float FloatOf(DataType type, uint32_t bits) {
  if (type == DataType::kFloat32) return std::bit_cast<float>(bits);
  if (type == DataType::kBfloat16) return std::bit_cast<float>(bits << 16);
  const uint32_t sign = (bits & 0x8000) << 16, exponent = bits >> 10 & 31, mantissa = bits & 1023;
  if (exponent == 31) return NAN;  // nor is an infinity near any sum
  if (exponent == 0) return (sign != 0 ? -1.0f : 1.0f) * static_cast<float>(mantissa) * 0x1p-24f;
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

}  // namespace

size_t BytesOf(DataType type) { return static_cast<size_t>(FormatOf(type).bytes); }

void FillRandom(void* input, int64_t elements, DataType type, uint64_t seed, int rank) {
  const Format format = FormatOf(type);
  auto* to = static_cast<uint8_t*>(input);
  for (int64_t i = 0; i < elements; ++i, to += format.bytes) {
    const uint32_t bits = BitsAt(format, seed, rank, i);
    std::memcpy(to, &bits, static_cast<size_t>(format.bytes));  // little-endian
  }
}

int64_t CountFar(const void* output, int64_t elements, DataType type, uint64_t seed, int ranks) {
  const Format format = FormatOf(type);
  const double unit_roundoff = std::ldexp(1.0, -format.mantissa_bits - 1);
  const auto* from = static_cast<const uint8_t*>(output);
  int64_t far = 0;
  for (int64_t i = 0; i < elements; ++i, from += format.bytes) {
    double sum = 0, size = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const double value = FloatOf(type, BitsAt(format, seed, rank, i));
      sum += value;
      size += std::fabs(value);
    }
    uint32_t bits = 0;
    std::memcpy(&bits, from, static_cast<size_t>(format.bytes));
    // Each addition rounds by half a unit of what is added up so far at most. A NaN is far from everything.
    far += std::fabs(FloatOf(type, bits) - sum) <= ranks * unit_roundoff * size ? 0 : 1;
  }
  return far;
}

}  // namespace r2cc::perf
