#include "base/core/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <string>

namespace r2cc {
namespace {

constexpr size_t kPage = 4096;

SharedKind Kind(size_t bytes, size_t bytes_most) {
  return {"box:a", 0x1234, 1, 1, bytes, Writable::kByMakerOnly, bytes_most, "box-maker", "upgrade the box"};
}

std::string RefusalOf(const SharedKind& kind, int fd) {
  std::string error;
  EXPECT_EQ(MapShared(kind, fd, &error), nullptr);
  return error;
}

TEST(SharedMemory, ReaderTakesAnySizeWithinBounds) {
  std::string error;
  int fd = -1;
  void* memory = nullptr;
  ASSERT_TRUE(MakeShared(Kind(3 * kPage, 0), &fd, &memory, &error)) << error;
  size_t bytes = 0;
  void* const seen = MapShared(Kind(kPage, 8 * kPage), dup(fd), &error, &bytes);
  ASSERT_NE(seen, nullptr) << error;
  EXPECT_EQ(bytes, 3 * kPage);
  static_cast<char*>(memory)[3 * kPage - 1] = 'x';
  EXPECT_EQ(static_cast<const char*>(seen)[3 * kPage - 1], 'x');
  UnmapShared(Kind(kPage, 8 * kPage), -1, seen, bytes);
  EXPECT_EQ(RefusalOf(Kind(kPage, 2 * kPage), dup(fd)), "box:a has 12288 bytes instead of 4096 to 8192");
  EXPECT_EQ(RefusalOf(Kind(4 * kPage, 8 * kPage), dup(fd)), "box:a has 12288 bytes instead of 16384 to 32768");
  EXPECT_EQ(RefusalOf(Kind(kPage, 0), dup(fd)), "box:a has 12288 bytes instead of 4096");
  UnmapShared(Kind(3 * kPage, 0), fd, memory);
}

TEST(SharedMemory, ErrorLinesNameTheMakerAndTheRemedy) {
  std::string error;
  int fd = -1;
  void* memory = nullptr;
  ASSERT_TRUE(MakeShared(Kind(kPage, 0), &fd, &memory, &error)) << error;
  SharedKind foreign = Kind(kPage, 0);
  foreign.magic = 5;
  EXPECT_EQ(RefusalOf(foreign, dup(fd)), "box:a has a foreign magic number: not made by box-maker");
  SharedKind newer = Kind(kPage, 0);
  newer.version = newer.version_least = 2;
  EXPECT_EQ(RefusalOf(newer, dup(fd)), "box:a version 1, this release reads 2: upgrade the box");
  EXPECT_EQ(RefusalOf(Kind(kPage, 0), open("/dev/null", O_RDONLY)), "box:a: the descriptor is not a sealed memfd");
  char name[64] = "";
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  ASSERT_GT(readlink(link.c_str(), name, sizeof(name) - 1), 0);
  EXPECT_STREQ(name, "/memfd:r2cc-box:a (deleted)");
  UnmapShared(Kind(kPage, 0), fd, memory);
}

}  // namespace
}  // namespace r2cc
