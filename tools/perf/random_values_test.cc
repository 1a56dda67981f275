#include "tools/perf/random_values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>
#include <vector>

namespace r2cc::perf {
namespace {

using abi::DataType;
using Bytes = std::vector<uint8_t>;

constexpr int kRanks = 4;
constexpr int64_t kCount = 5000;
constexpr uint64_t kSeed = 7;

Bytes InputOf(DataType type, int rank, uint64_t seed = kSeed) {
  Bytes input(kCount * BytesOf(type));
  FillRandom(input.data(), kCount, type, seed, rank);
  return input;
}

std::vector<float> Floats(int rank) {
  std::vector<float> values(kCount);
  FillRandom(values.data(), kCount, DataType::kFloat32, kSeed, rank);
  return values;
}

// Added up in the order in which `ranks` has them.
std::vector<float> SumOf(const std::vector<int>& ranks) {
  std::vector<float> sum(kCount);
  for (const int rank : ranks) {
    const std::vector<float> values = Floats(rank);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
  }
  return sum;
}

class RandomValuesOf : public testing::TestWithParam<DataType> {};

TEST_P(RandomValuesOf, SeedAndRankMakeThem) {
  EXPECT_EQ(InputOf(GetParam(), 0), InputOf(GetParam(), 0));
  EXPECT_NE(InputOf(GetParam(), 0), InputOf(GetParam(), 1));
  EXPECT_NE(InputOf(GetParam(), 0), InputOf(GetParam(), 0, kSeed + 1));
}

// The sum over one rank is what that rank has, exactly.
TEST_P(RandomValuesOf, AValueIsNearItself) {
  Bytes values = InputOf(GetParam(), 0);
  EXPECT_EQ(CountFar(values.data(), kCount, GetParam(), kSeed, 1), 0);
  const size_t bytes = BytesOf(GetParam());
  values[3 * bytes - 1] ^= 0x80;                      // the sign of the third one
  std::memset(&values[10 * bytes], 0xff, 2 * bytes);  // no numbers
  std::memset(&values[20 * bytes], 0, bytes);
  EXPECT_EQ(CountFar(values.data(), kCount, GetParam(), kSeed, 1), 4);
}

TEST_P(RandomValuesOf, NothingButTheSumIsNear) {
  const Bytes values = InputOf(GetParam(), 0);
  EXPECT_GT(CountFar(values.data(), kCount, GetParam(), kSeed, kRanks), kCount / 2);
}

INSTANTIATE_TEST_SUITE_P(Types, RandomValuesOf, testing::Values(DataType::kFloat32, DataType::kFloat16, DataType::kBfloat16));

TEST(RandomValues, AnOrderOfAdditionsShowsInTheBitsAndIsNear) {
  const std::vector<float> one = SumOf({0, 1, 2, 3}), other = SumOf({3, 1, 0, 2});
  EXPECT_NE(one, other);
  EXPECT_EQ(CountFar(one.data(), kCount, DataType::kFloat32, kSeed, kRanks), 0);
  EXPECT_EQ(CountFar(other.data(), kCount, DataType::kFloat32, kSeed, kRanks), 0);
}

TEST(RandomValues, AreOfSeveralSizesAndBothSigns) {
  std::set<int> exponents;
  int64_t negative = 0;
  for (const float value : Floats(0)) {
    exponents.insert(std::ilogb(value));
    negative += std::signbit(value) ? 1 : 0;
  }
  EXPECT_EQ(exponents, (std::set<int>{-7, -6, -5, -4, -3, -2, -1, 0}));
  EXPECT_GT(negative, kCount / 3);
  EXPECT_LT(negative, kCount * 2 / 3);
}

}  // namespace
}  // namespace r2cc::perf
