#include "tools/perf/pattern.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace r2cc::perf {
namespace {

constexpr size_t kGuardBlockBytes = 4096;
constexpr int64_t kCheckBlock = 2048;  // elements whose expected sum fits the first-level cache

// A few multiplications an element, no table, no branch: the compiler makes vectors of it.
inline uint32_t Mix(uint32_t index, uint32_t seed) {
  uint32_t x = (index + seed) * 0x9E3779B1u;
  x ^= x >> 15;
  x *= 0x85EBCA77u;
  return x ^ seed;
}

uint32_t SeedOf(int rank, uint32_t iteration) {
  uint32_t x = static_cast<uint32_t>(rank + 1) * 0xC2B2AE3Du ^ (iteration + 1) * 0x27D4EB2Fu;
  x ^= x >> 13;
  return x * 0x165667B1u;
}

// 2^24 / ranks leaves this many bits for one value; 16 are plenty.
int ShiftOf(int ranks) {
  int sum_bits = 0;
  while ((1 << sum_bits) < ranks) ++sum_bits;
  return 32 - std::min(16, 24 - sum_bits);
}

inline float Value(uint32_t index, uint32_t seed, int shift) { return static_cast<float>(static_cast<int32_t>(Mix(index, seed) >> shift)); }

int64_t CountWrongAgainst(const float* output, int64_t elements, uint32_t first_index, int first_rank, int last_rank, int ranks,
                          uint32_t iteration) {
  const int shift = ShiftOf(ranks);
  int64_t wrong = 0;
  std::array<float, kCheckBlock> expected;
  for (int64_t begin = 0; begin < elements; begin += kCheckBlock) {
    const int64_t size = std::min(kCheckBlock, elements - begin);
    std::fill_n(expected.begin(), size, 0.0f);
    for (int rank = first_rank; rank <= last_rank; ++rank) {
      const uint32_t seed = SeedOf(rank, iteration);
      const uint32_t index = first_index + static_cast<uint32_t>(begin);
      for (int64_t i = 0; i < size; ++i) expected[i] += Value(index + static_cast<uint32_t>(i), seed, shift);
    }
    int32_t wrong_here = 0;
    for (int64_t i = 0; i < size; ++i) wrong_here += output[begin + i] == expected[i] ? 0 : 1;
    wrong += wrong_here;
  }
  return wrong;
}

const std::array<uint32_t, kGuardBlockBytes / 4>& GuardBlock() {
  static const auto block = [] {
    std::array<uint32_t, kGuardBlockBytes / 4> words;
    words.fill(kGuardWord);
    return words;
  }();
  return block;
}

}  // namespace

float ValueAt(int rank, int ranks, uint32_t iteration, uint32_t index) { return Value(index, SeedOf(rank, iteration), ShiftOf(ranks)); }

void FillInput(float* input, int64_t elements, int rank, int ranks, uint32_t iteration) {
  const uint32_t seed = SeedOf(rank, iteration);
  const int shift = ShiftOf(ranks);
  for (int64_t i = 0; i < elements; ++i) input[i] = Value(static_cast<uint32_t>(i), seed, shift);
}

int64_t CountWrong(Collective collective, const float* output, int64_t count, int rank, int ranks, uint32_t iteration) {
  switch (collective) {
    case Collective::kAllReduce: return CountWrongAgainst(output, count, 0, 0, ranks - 1, ranks, iteration);
    case Collective::kSendRecv: {
      const int from = (rank + ranks - 1) % ranks;
      return CountWrongAgainst(output, count, 0, from, from, ranks, iteration);
    }
    case Collective::kAllToAll: {
      int64_t wrong = 0;
      const auto block_in_sender = static_cast<uint32_t>(rank * count);
      for (int from = 0; from < ranks; ++from)
        wrong += CountWrongAgainst(output + from * count, count, block_in_sender, from, from, ranks, iteration);
      return wrong;
    }
  }
  return count;
}

void Combine(const float* __restrict received, const float* __restrict input, float* __restrict output, float* __restrict send,
             int64_t elements) {
  const auto bytes = static_cast<size_t>(elements) * sizeof(float);
  if (received != nullptr && input != nullptr) {
    if (output != nullptr && send != nullptr) {
      for (int64_t i = 0; i < elements; ++i) output[i] = send[i] = received[i] + input[i];
    } else if (float* to = output != nullptr ? output : send; to != nullptr) {
      for (int64_t i = 0; i < elements; ++i) to[i] = received[i] + input[i];
    }
    return;
  }
  const float* from = received != nullptr ? received : input;
  if (from == nullptr || elements == 0) return;
  if (output != nullptr) std::memcpy(output, from, bytes);
  if (send != nullptr) std::memcpy(send, from, bytes);
}

void FillGuard(void* memory, size_t bytes) {
  auto* at = static_cast<uint8_t*>(memory);
  bytes = (bytes + 3) / 4 * 4;
  for (size_t done = 0; done < bytes; done += kGuardBlockBytes)
    std::memcpy(at + done, GuardBlock().data(), std::min(kGuardBlockBytes, bytes - done));
}

bool GuardIntact(const void* memory, size_t bytes) {
  const auto* at = static_cast<const uint8_t*>(memory);
  bytes = (bytes + 3) / 4 * 4;
  for (size_t done = 0; done < bytes; done += kGuardBlockBytes)
    if (std::memcmp(at + done, GuardBlock().data(), std::min(kGuardBlockBytes, bytes - done)) != 0) return false;
  return true;
}

}  // namespace r2cc::perf
