#include "netplugin/transport/verbs/tail.h"

#include <gtest/gtest.h>

namespace r2cc::net::verbs {
namespace {

constexpr uint32_t kTag = 0x5eed;

TEST(Tail, ComesBackAndNothingElseDoes) {
  const Tail tail{300'001, 131'072};
  auto bytes = Encode(tail, 77, kTag);
  Tail got;
  ASSERT_TRUE(Decode(bytes, 77, kTag, &got));
  EXPECT_EQ(got, tail);
  EXPECT_FALSE(Decode(bytes, 78, kTag, &got));
  EXPECT_FALSE(Decode(bytes, 77, kTag + 1, &got));
  for (size_t bit = 0; bit < 8 * kTailBytes; ++bit) {
    bytes[bit / 8] ^= std::byte{1} << bit % 8;
    EXPECT_FALSE(Decode(bytes, 77, kTag, &got)) << bit;
    bytes[bit / 8] ^= std::byte{1} << bit % 8;
  }
}

TEST(Tail, RefusesWhatNoMessageIs) {
  Tail got;
  for (const Tail& bad : {Tail{1, 0}, Tail{1, 100}, Tail{kMessageBytesMax + 1, 1u << 30}, Tail{uint64_t{kChunksMax} * 128 + 1, 128}})
    EXPECT_FALSE(Decode(Encode(bad, 1, kTag), 1, kTag, &got)) << bad.message_bytes;
  EXPECT_TRUE(Decode(Encode({uint64_t{kChunksMax} * 128, 128}, 1, kTag), 1, kTag, &got));
}

TEST(Tail, GivesTheHeaderOfEachChunk) {
  const Tail tail{300, 128};
  Chunk header;
  ASSERT_TRUE(HeaderOf({5, 0, false}, 3, 9, tail, &header));
  EXPECT_EQ(header.bytes, 128u);
  EXPECT_EQ(header.flow, 3u);
  EXPECT_EQ(header.message, 9u);
  ASSERT_TRUE(HeaderOf({5, 2, true}, 3, 9, tail, &header));
  EXPECT_EQ(header.bytes, 44u);
  EXPECT_EQ(header.message_bytes, 300u);
  EXPECT_FALSE(HeaderOf({5, 2, false}, 3, 9, tail, &header));
  EXPECT_FALSE(HeaderOf({5, 1, true}, 3, 9, tail, &header));
  EXPECT_FALSE(HeaderOf({5, 3, true}, 3, 9, tail, &header));
}

TEST(Tail, WithoutItTheChunkIsTheMessage) {
  Chunk header;
  ASSERT_TRUE(HeaderOf({5, 0, true}, 3, 9, 1000u, &header));
  EXPECT_EQ(header.message_bytes, 1000u);
  EXPECT_EQ(header.chunk_bytes, 1024u);
  ASSERT_TRUE(HeaderOf({5, 0, true}, 3, 9, 0u, &header));
  EXPECT_EQ(header.chunk_bytes, kChunkAlignment);
  EXPECT_FALSE(HeaderOf({5, 0, false}, 3, 9, 1000u, &header));
  EXPECT_FALSE(HeaderOf({5, 1, true}, 3, 9, 1000u, &header));
  EXPECT_FALSE(HeaderOf({5, 0, true}, 3, 9, UINT32_MAX, &header));
}

}  // namespace
}  // namespace r2cc::net::verbs
