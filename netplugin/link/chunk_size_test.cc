#include "netplugin/link/chunk_size.h"

#include <gtest/gtest.h>

#include "netplugin/flow/tuning.h"
#include "netplugin/flow/types.h"

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
    EXPECT_EQ(ChunkBytesOf({.base_bytes = row.base_bytes, .rate_bytes_per_s = row.rate_bytes_per_s}), row.chunk_bytes)
        << row.rate_bytes_per_s << " " << row.base_bytes;
}

TEST(ChunkSize, IsTheBaseOnALinkThatIsNotTheFlowsOwn) {
  EXPECT_EQ(ChunkBytesOf({.way = ChunkWay::kNextLink, .rate_bytes_per_s = 1e12}), tuning::kChunkBytesBase);
}

TEST(ChunkSize, IsWhatTheSlowestRailSendsInTwoMillisecondsWhereChunksAreDealtOut) {
  struct Row {
    double slowest_bytes_per_s;
    uint32_t base_bytes, chunk_bytes;
  };
  for (const Row& row : {Row{0, 128 * kKiB, 128 * kKiB}, Row{1e3, 128 * kKiB, 32 * kKiB}, Row{16e6, 128 * kKiB, 32 * kKiB},
                         Row{40e6, 128 * kKiB, 64 * kKiB}, Row{1e9, 128 * kKiB, 128 * kKiB}, Row{1e9, 64 * kKiB, 64 * kKiB}})
    EXPECT_EQ(ChunkBytesOf({.way = ChunkWay::kAllLinks,
                            .message_bytes = 4096 * kKiB,
                            .base_bytes = row.base_bytes,
                            .slowest_bytes_per_s = row.slowest_bytes_per_s}),
              row.chunk_bytes)
        << row.slowest_bytes_per_s << " " << row.base_bytes;
}

uint32_t Even(uint64_t message_bytes, size_t links_alike, uint32_t base_bytes = tuning::kChunkBytesBase) {
  return ChunkBytesOf({.way = ChunkWay::kAllLinks, .message_bytes = message_bytes, .base_bytes = base_bytes, .links_alike = links_alike});
}

TEST(ChunkSize, GivesEachOfSeveralLinksAlikeAsManyChunksOfAMessage) {
  for (const uint64_t message_bytes : {129 * kKiB, 512 * kKiB, 1000 * kKiB, 4096 * kKiB})
    for (size_t links = 1; links <= 8; ++links) {
      const uint32_t chunk_bytes = Even(message_bytes, links);
      EXPECT_EQ(ChunkCount(message_bytes, chunk_bytes) % links, 0u) << message_bytes << " on " << links;
      EXPECT_EQ(chunk_bytes % kChunkAlignment, 0u);
      EXPECT_LE(chunk_bytes, tuning::kChunkBytesBase * 3 / 2);
    }
  EXPECT_EQ(Even(512 * kKiB, 3), 174'848u) << "a third";
}

TEST(ChunkSize, LeavesWhatIsNotSharedByLinksAlikeAsItIs) {
  EXPECT_EQ(Even(4096 * kKiB, 0, 64 * kKiB), 64 * kKiB);
  EXPECT_EQ(Even(64 * kKiB, 3, 64 * kKiB), 64 * kKiB) << "one chunk";
  EXPECT_EQ(Even(0, 3), tuning::kChunkBytesBase) << "what a link is told of the chunks to come";
}

}  // namespace
}  // namespace r2cc::net
