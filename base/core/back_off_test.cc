#include "base/core/back_off.h"

#include <gtest/gtest.h>

namespace r2cc {
namespace {

TEST(ExponentialBackOff, DoublesUpToItsLongestAndStaysThere) {
  ExponentialBackOff back_off(100, 750);
  for (const Nanos expected : {100, 200, 400, 750, 750, 750}) EXPECT_EQ(back_off.Next(), expected);
}

TEST(ExponentialBackOff, BeginsAgainAfterASuccess) {
  ExponentialBackOff back_off(100, 750);
  back_off.Reset();
  EXPECT_EQ(back_off.Next(), 100);
  EXPECT_EQ(back_off.Next(), 200);
  back_off.Reset();
  EXPECT_EQ(back_off.Next(), 100);
}

}  // namespace
}  // namespace r2cc
