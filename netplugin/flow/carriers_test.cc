#include "netplugin/flow/carriers.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <utility>

namespace r2cc::net {
namespace {

TEST(Carriers, IsEmptyUntilAssigned) {
  Carriers carriers;
  EXPECT_TRUE(carriers.empty());
  EXPECT_EQ(carriers.begin(), carriers.end());
}

TEST(Carriers, HoldsOneOrMany) {
  for (const size_t size : {1, 2, 1000}) {
    Carriers carriers;
    carriers.Assign(size, 7);
    EXPECT_EQ(carriers.size(), size);
    carriers[size - 1] = 9;
    const Carriers& read = carriers;
    EXPECT_EQ(read[size - 1], 9);
    EXPECT_EQ(std::accumulate(carriers.begin(), carriers.end(), size_t{0}), 7 * (size - 1) + 9);
  }
}

TEST(Carriers, MovesAndLeavesNothingBehind) {
  for (const size_t size : {1, 3}) {
    Carriers from;
    from.Assign(size, 5);
    Carriers to = std::move(from);
    EXPECT_EQ(to.size(), size);
    EXPECT_EQ(to[size - 1], 5);
    EXPECT_TRUE(from.empty());  // NOLINT(bugprone-use-after-move)
    from = std::move(to);
    EXPECT_EQ(from[0], 5);
    EXPECT_TRUE(to.empty());  // NOLINT(bugprone-use-after-move)
  }
}

TEST(Carriers, StaysAsItWasWithoutMemory) {
  Carriers none, some;
  some.Assign(3, 1);
  EXPECT_ANY_THROW(none.Assign(SIZE_MAX, 2));
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.begin(), none.end());
  EXPECT_ANY_THROW(some.Assign(SIZE_MAX, 2));
  EXPECT_EQ(some.size(), 3u);
  EXPECT_EQ(some[2], 1);
}

TEST(Carriers, AssignsAnew) {
  Carriers carriers;
  carriers.Assign(3, 1);
  carriers.Assign(1, 2);
  EXPECT_EQ(carriers.size(), 1u);
  EXPECT_EQ(carriers[0], 2);
}

}  // namespace
}  // namespace r2cc::net
