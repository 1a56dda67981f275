#include "netplugin/flow/buffer_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace r2cc::net {
namespace {

TEST(BufferPool, TheNewestOfTheSizeIsUsedAgain) {
  BufferPool pool;
  BufferPool::Block first = pool.Acquire(30'000), second = pool.Acquire(32'768);
  const std::byte *was_first = first.get(), *was_second = second.get();
  pool.Release(std::move(first), 30'000);
  pool.Release(std::move(second), 32'768);
  EXPECT_EQ(pool.kept_bytes(), 65'536u);
  EXPECT_NE(pool.Acquire(16'384).get(), was_second) << "a smaller size has its own";
  EXPECT_EQ(pool.Acquire(16'385).get(), was_second);
  EXPECT_EQ(pool.Acquire(20'000).get(), was_first);
  EXPECT_EQ(pool.kept_bytes(), 0u);
}

TEST(BufferPool, EachIsAsLargeAsWasAskedFor) {
  BufferPool pool;
  for (const uint64_t bytes : {0, 1, 4096, 4097, 8192, 8193, 65'535, 65'536}) {
    for (int again = 0; again < 2; ++again) {
      BufferPool::Block copy = pool.Acquire(bytes);
      std::memset(copy.get(), 0x5a, bytes);  // the sanitizer looks
      pool.Release(std::move(copy), bytes);
    }
  }
}

TEST(BufferPool, AHeldBlockIsNotUsedAgain) {
  BufferPool pool;
  BufferPool::Block copy = pool.Acquire(65'536);
  const BufferPool::Block held = copy;
  pool.Release(std::move(copy), 65'536);
  EXPECT_EQ(pool.kept_bytes(), 0u);
  EXPECT_NE(pool.Acquire(65'536).get(), held.get());
}

TEST(BufferPool, NoMoreThanSoMuchIsKept) {
  BufferPool pool;
  std::vector<BufferPool::Block> taken;
  for (uint64_t bytes = 0; bytes <= 2 * BufferPool::kKeptBytesMost; bytes += 65'536) taken.push_back(pool.Acquire(65'536));
  for (BufferPool::Block& copy : taken) pool.Release(std::move(copy), 65'536);
  EXPECT_EQ(pool.kept_bytes(), BufferPool::kKeptBytesMost);
  pool.Release(nullptr, 65'536);
  EXPECT_EQ(pool.kept_bytes(), BufferPool::kKeptBytesMost);
}

}  // namespace
}  // namespace r2cc::net
