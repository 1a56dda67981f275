#include "netplugin/flow/copies.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace r2cc::net {
namespace {

TEST(Copies, TheNewestOfTheSizeIsUsedAgain) {
  Copies copies;
  Copies::Copy first = copies.Take(30'000), second = copies.Take(32'768);
  const std::byte *was_first = first.get(), *was_second = second.get();
  copies.GiveBack(std::move(first), 30'000);
  copies.GiveBack(std::move(second), 32'768);
  EXPECT_EQ(copies.kept_bytes(), 65'536u);
  EXPECT_NE(copies.Take(16'384).get(), was_second) << "a smaller size has its own";
  EXPECT_EQ(copies.Take(16'385).get(), was_second);
  EXPECT_EQ(copies.Take(20'000).get(), was_first);
  EXPECT_EQ(copies.kept_bytes(), 0u);
}

TEST(Copies, EachIsAsLargeAsWasAskedFor) {
  Copies copies;
  for (const uint64_t bytes : {0, 1, 4096, 4097, 8192, 8193, 65'535, 65'536}) {
    for (int again = 0; again < 2; ++again) {
      Copies::Copy copy = copies.Take(bytes);
      std::memset(copy.get(), 0x5a, bytes);  // the sanitizer looks
      copies.GiveBack(std::move(copy), bytes);
    }
  }
}

TEST(Copies, WhatSomebodyHoldsIsNotUsedAgain) {
  Copies copies;
  Copies::Copy copy = copies.Take(65'536);
  const Copies::Copy held = copy;
  copies.GiveBack(std::move(copy), 65'536);
  EXPECT_EQ(copies.kept_bytes(), 0u);
  EXPECT_NE(copies.Take(65'536).get(), held.get());
}

TEST(Copies, NoMoreThanSoMuchIsKept) {
  Copies copies;
  std::vector<Copies::Copy> taken;
  for (uint64_t bytes = 0; bytes <= 2 * Copies::kKeptBytesMost; bytes += 65'536) taken.push_back(copies.Take(65'536));
  for (Copies::Copy& copy : taken) copies.GiveBack(std::move(copy), 65'536);
  EXPECT_EQ(copies.kept_bytes(), Copies::kKeptBytesMost);
  copies.GiveBack(nullptr, 65'536);
  EXPECT_EQ(copies.kept_bytes(), Copies::kKeptBytesMost);
}

}  // namespace
}  // namespace r2cc::net
