#include "netplugin/flow/path_epochs.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <utility>

namespace r2cc::net {
namespace {

TEST(PathEpochs, IsEmptyUntilAssigned) {
  PathEpochs epochs;
  EXPECT_TRUE(epochs.empty());
  EXPECT_EQ(epochs.begin(), epochs.end());
}

TEST(PathEpochs, HoldsOneOrMany) {
  for (const size_t size : {1, 2, 1000}) {
    PathEpochs epochs;
    epochs.Assign(size, 7);
    EXPECT_EQ(epochs.size(), size);
    epochs[size - 1] = 9;
    const PathEpochs& read = epochs;
    EXPECT_EQ(read[size - 1], 9);
    EXPECT_EQ(std::accumulate(epochs.begin(), epochs.end(), size_t{0}), 7 * (size - 1) + 9);
  }
}

TEST(PathEpochs, MovesAndLeavesNothingBehind) {
  for (const size_t size : {1, 3}) {
    PathEpochs from;
    from.Assign(size, 5);
    PathEpochs to = std::move(from);
    EXPECT_EQ(to.size(), size);
    EXPECT_EQ(to[size - 1], 5);
    EXPECT_TRUE(from.empty());  // NOLINT(bugprone-use-after-move)
    from = std::move(to);
    EXPECT_EQ(from[0], 5);
    EXPECT_TRUE(to.empty());  // NOLINT(bugprone-use-after-move)
  }
}

TEST(PathEpochs, StaysAsItWasWithoutMemory) {
  PathEpochs none, some;
  some.Assign(3, 1);
  EXPECT_ANY_THROW(none.Assign(SIZE_MAX, 2));
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.begin(), none.end());
  EXPECT_ANY_THROW(some.Assign(SIZE_MAX, 2));
  EXPECT_EQ(some.size(), 3u);
  EXPECT_EQ(some[2], 1);
}

TEST(PathEpochs, ALaterAssignmentReplacesAll) {
  PathEpochs epochs;
  epochs.Assign(3, 1);
  epochs.Assign(1, 2);
  EXPECT_EQ(epochs.size(), 1u);
  EXPECT_EQ(epochs[0], 2);
}

}  // namespace
}  // namespace r2cc::net
