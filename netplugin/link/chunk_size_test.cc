#include "netplugin/link/chunk_size.h"

#include <gtest/gtest.h>

namespace r2cc::net {
namespace {

constexpr uint32_t kKiB = 1024;

TEST(ChunkSize, FollowsTheRateOfTheFlowsOwnLinkByPowersOfTwo) {
  struct Row {
    double rate_bytes_per_s;
    uint32_t base_bytes, chunk_bytes;
  };
  for (const Row& row : {Row{0, 128 * kKiB, 128 * kKiB}, Row{1e9, 128 * kKiB, 128 * kKiB}, Row{1.4e9, 128 * kKiB, 256 * kKiB},
                         Row{2.5e9, 128 * kKiB, 256 * kKiB}, Row{3e9, 128 * kKiB, 512 * kKiB}, Row{1e12, 128 * kKiB, 512 * kKiB},
                         Row{1e9, 1024 * kKiB, 1024 * kKiB}})
    EXPECT_EQ(ChunkBytesOf(row.base_bytes, row.rate_bytes_per_s), row.chunk_bytes) << row.rate_bytes_per_s << " " << row.base_bytes;
}

}  // namespace
}  // namespace r2cc::net
