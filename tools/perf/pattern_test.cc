#include "tools/perf/pattern.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace r2cc::perf {
namespace {

constexpr int kRanks = 4;
constexpr int64_t kCount = 5000;

// The result that the collective must give rank `rank`, computed one element at a time.
std::vector<float> Reference(Collective collective, int rank, uint32_t iteration) {
  std::vector<float> output(BufferElements(collective, kCount, kRanks));
  for (size_t i = 0; i < output.size(); ++i) {
    const auto index = static_cast<uint32_t>(i);
    switch (collective) {
      case Collective::kAllReduce:
        for (int from = 0; from < kRanks; ++from) output[i] += ValueAt(from, kRanks, iteration, index);
        break;
      case Collective::kSendRecv: output[i] = ValueAt((rank + kRanks - 1) % kRanks, kRanks, iteration, index); break;
      case Collective::kAllToAll:
        output[i] = ValueAt(static_cast<int>(i / kCount), kRanks, iteration, static_cast<uint32_t>(rank * kCount + i % kCount));
        break;
    }
  }
  return output;
}

class PatternOf : public testing::TestWithParam<Collective> {};

TEST_P(PatternOf, RightDataHaveNoWrongElement) {
  for (int rank = 0; rank < kRanks; ++rank)
    EXPECT_EQ(CountWrong(GetParam(), Reference(GetParam(), rank, 3).data(), kCount, rank, kRanks, 3), 0);
}

TEST_P(PatternOf, EveryWrongElementCounts) {
  std::vector<float> output = Reference(GetParam(), 1, 3);
  output[0] += 1;
  output[2049] -= 1;
  output.back() = NAN;
  EXPECT_EQ(CountWrong(GetParam(), output.data(), kCount, 1, kRanks, 3), 3);
}

TEST_P(PatternOf, LeftoversOfAnotherIterationAreWrong) {
  const int64_t elements = BufferElements(GetParam(), kCount, kRanks);
  EXPECT_GT(CountWrong(GetParam(), Reference(GetParam(), 1, 3).data(), kCount, 1, kRanks, 4), elements * 99 / 100);
}

TEST_P(PatternOf, AnotherRanksDataAreWrong) {
  if (GetParam() == Collective::kAllReduce) return;  // the same everywhere
  const int64_t elements = BufferElements(GetParam(), kCount, kRanks);
  EXPECT_GT(CountWrong(GetParam(), Reference(GetParam(), 1, 3).data(), kCount, 2, kRanks, 3), elements * 99 / 100);
}

TEST_P(PatternOf, SwappedSlicesAreWrong) {
  std::vector<float> output = Reference(GetParam(), 1, 3);
  std::swap_ranges(output.begin(), output.begin() + 1024, output.begin() + 1024);
  EXPECT_GT(CountWrong(GetParam(), output.data(), kCount, 1, kRanks, 3), 2000);
}

INSTANTIATE_TEST_SUITE_P(PatternTest, PatternOf, testing::Values(Collective::kAllReduce, Collective::kSendRecv, Collective::kAllToAll),
                         [](const auto& info) { return CollectiveName(info.param); });

TEST(PatternTest, ValuesAreIntegersWhoseSumsAreExact) {
  for (const int ranks : {2, 256, 257, kRanksMax}) {
    float largest = 0;
    for (uint32_t i = 0; i < 100000; ++i) {
      const float value = ValueAt(ranks - 1, ranks, 7, i);
      ASSERT_EQ(value, std::floor(value));
      ASSERT_GE(value, 0);
      largest = std::max(largest, value);
    }
    EXPECT_LE(static_cast<double>(largest) * ranks, 1 << 24);
    EXPECT_GT(largest, 1000);
  }
}

TEST(PatternTest, FillIsTheValue) {
  std::vector<float> input(1000);
  FillInput(input.data(), 1000, 2, kRanks, 9);
  for (uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(input[i], ValueAt(2, kRanks, 9, i));
}

TEST(PatternTest, CombineCoversAllCases) {
  const std::vector<float> received(37, 2), input(37, 3);
  for (int mask = 1; mask < 16; ++mask) {
    const bool has_received = mask & 1, has_input = mask & 2, has_output = mask & 4, has_send = mask & 8;
    if (!has_received && !has_input) continue;
    std::vector<float> output(37, -1), send(37, -1);
    Combine(has_received ? received.data() : nullptr, has_input ? input.data() : nullptr, has_output ? output.data() : nullptr,
            has_send ? send.data() : nullptr, 37);
    const float value = (has_received ? 2.0f : 0) + (has_input ? 3.0f : 0);
    EXPECT_EQ(output, std::vector<float>(37, has_output ? value : -1)) << mask;
    EXPECT_EQ(send, std::vector<float>(37, has_send ? value : -1)) << mask;
  }
}

TEST(PatternTest, GuardSeesEveryByte) {
  std::vector<uint32_t> memory(3000);
  FillGuard(memory.data(), 12000);
  EXPECT_TRUE(GuardIntact(memory.data(), 12000));
  for (const size_t byte : {size_t{0}, size_t{4095}, size_t{4096}, size_t{11999}}) {
    auto* bytes = reinterpret_cast<uint8_t*>(memory.data());
    bytes[byte] ^= 1;
    EXPECT_FALSE(GuardIntact(memory.data(), 12000)) << byte;
    bytes[byte] ^= 1;
  }
}

}  // namespace
}  // namespace r2cc::perf
