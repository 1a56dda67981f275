#include "netplugin/transport/load_watch.h"

#include <gtest/gtest.h>

namespace r2cc::net {
namespace {

constexpr Nanos kTick = 5 * kNanosPerMs;
constexpr uint64_t kHeavyBytesPerS = 200'000'000, kHeavyBytesPerTick = kHeavyBytesPerS / 1000 * 5;

TEST(LoadWatch, IsHeavyFromTheFirstTickThatMovedEnough) {
  LoadWatch watch(kHeavyBytesPerS);
  watch.Tick(0, kTick);
  EXPECT_FALSE(watch.heavy());
  watch.Tick(kHeavyBytesPerTick - 1, 2 * kTick);
  EXPECT_FALSE(watch.heavy());
  watch.Tick(2 * kHeavyBytesPerTick - 1, 3 * kTick);
  EXPECT_TRUE(watch.heavy());
}

TEST(LoadWatch, WhatWasMovedBeforeTheFirstTickDoesNotCount) {
  LoadWatch watch(kHeavyBytesPerS);
  watch.Tick(1000 * kHeavyBytesPerTick, kTick);
  EXPECT_FALSE(watch.heavy());
}

TEST(LoadWatch, OutlastsAPause) {
  LoadWatch watch(kHeavyBytesPerS);
  watch.Tick(0, kTick);
  watch.Tick(kHeavyBytesPerTick, 2 * kTick);
  Nanos now = 2 * kTick;
  for (; now < 2 * kTick + LoadWatch::kHeavyFor; now += kTick) {
    watch.Tick(kHeavyBytesPerTick, now);
    EXPECT_TRUE(watch.heavy());
  }
  watch.Tick(kHeavyBytesPerTick, now);
  EXPECT_FALSE(watch.heavy());
}

TEST(LoadWatch, ALateTickIsMeasuredByItsTime) {
  LoadWatch watch(kHeavyBytesPerS);
  watch.Tick(0, kTick);
  watch.Tick(kHeavyBytesPerTick, 101 * kTick);
  EXPECT_FALSE(watch.heavy());
}

}  // namespace
}  // namespace r2cc::net
