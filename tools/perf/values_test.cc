#include "tools/perf/values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

namespace r2cc::perf {
namespace {

constexpr int64_t kCount = 1000;

Options Wanted(bool random) {
  Options options;
  options.ranks = 2;
  if (random) options.random_seed = 3;
  return options;
}

// One iteration of an all_reduce of two ranks. `spoil` gets an element of the result.
Report Iteration(std::vector<Values>* ranks, uint32_t iteration, const std::function<void(float*)>& spoil = nullptr) {
  std::vector<float> inputs[2] = {std::vector<float>(kCount), std::vector<float>(kCount)}, output(kCount);
  for (size_t rank = 0; rank < 2; ++rank) (*ranks)[rank].Fill(inputs[rank].data(), output.data(), kCount, iteration);
  for (size_t i = 0; i < output.size(); ++i) output[i] = inputs[0][i] + inputs[1][i];
  if (spoil != nullptr) spoil(&output[7]);
  Report report;
  report.wrong_elements = 99;
  (*ranks)[0].Judge(output.data(), kCount, iteration, &report);
  return report;
}

void AddOne(float* at) { *at += 1; }

TEST(ValuesTest, ExactOnesDifferInEachIterationAndHaveNoHash) {
  std::vector<Values> ranks = {{Wanted(false), 0}, {Wanted(false), 1}};
  EXPECT_EQ(Iteration(&ranks, 0).wrong_elements, 0);
  EXPECT_EQ(Iteration(&ranks, 1, AddOne).wrong_elements, 1);
  EXPECT_EQ(Iteration(&ranks, 2).hash, 0u);
}

TEST(ValuesTest, RandomOnesHaveOneHashInAllIterations) {
  std::vector<Values> ranks = {{Wanted(true), 0}, {Wanted(true), 1}};
  const Report first = Iteration(&ranks, 0), second = Iteration(&ranks, 1);
  EXPECT_EQ(first.wrong_elements, 0);
  EXPECT_NE(first.hash, 0u);
  EXPECT_EQ(second.wrong_elements, 0);
  EXPECT_EQ(second.hash, first.hash);
  // Rounding alone is not wrong, and shows.
  const Report rounded = Iteration(&ranks, 2, [](float* at) { *at = std::nextafter(*at, 0.0f); });
  EXPECT_EQ(rounded.wrong_elements, 0);
  EXPECT_NE(rounded.hash, first.hash);
  EXPECT_EQ(Iteration(&ranks, 3, AddOne).wrong_elements, 1);
}

// A plugin that reports "done" and writes nothing.
TEST(ValuesTest, AResultOfTheIterationBeforeIsNone) {
  Values values(Wanted(true), 0);
  std::vector<float> input(kCount), output(kCount);
  values.Fill(input.data(), output.data(), kCount, 0);
  Report report;
  values.Judge(output.data(), kCount, 0, &report);
  EXPECT_EQ(report.wrong_elements, kCount);
}

TEST(ValuesTest, WithoutChecksNothingIsFilledOrJudged) {
  Options options = Wanted(false);
  options.check = false;
  std::vector<Values> ranks = {{options, 0}, {options, 1}};
  EXPECT_EQ(Iteration(&ranks, 0, AddOne).wrong_elements, 0);
}

}  // namespace
}  // namespace r2cc::perf
