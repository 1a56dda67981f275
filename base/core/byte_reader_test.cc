#include "base/core/byte_reader.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace r2cc {
namespace {

constexpr std::array<uint8_t, 7> kBytes{1, 2, 3, 4, 'a', '\n', 0x80};

TEST(ByteReader, ReadsLittleEndianNumbersOneAfterTheOther) {
  ByteReader reader(kBytes);
  EXPECT_EQ(reader.Get<uint8_t>(), 1u);
  EXPECT_EQ(reader.Get<uint16_t>(), 0x0302u);
  EXPECT_EQ(reader.left(), 4u);
  EXPECT_FALSE(reader.Done());
  EXPECT_EQ(reader.Take(4).size(), 4u);
  EXPECT_TRUE(reader.Done());
  EXPECT_EQ(NumberAt<uint32_t>(kBytes, 0), 0x04030201u);
}

TEST(ByteReader, TextIsOnePrintableLine) {
  ByteReader reader(kBytes);
  reader.Take(4);
  EXPECT_EQ(reader.TakeText(3), "a??");
  EXPECT_TRUE(reader.Done());
}

TEST(ByteReader, PastTheEndItYieldsNothingAndIsNotOkForGood) {
  ByteReader reader(kBytes);
  EXPECT_EQ(reader.Get<uint64_t>(), 0u);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.Get<uint8_t>(), 1u) << "what is there can be read";
  EXPECT_TRUE(reader.Take(std::numeric_limits<size_t>::max()).empty());
  EXPECT_EQ(reader.TakeText(100), "");
  EXPECT_EQ(reader.Take(6).size(), 6u);
  EXPECT_FALSE(reader.Done());
}

TEST(ByteReader, ImpossibleRequestsAreNeverDone) {
  ByteReader reader{std::span<const uint8_t>(kBytes).first(1)};
  reader.Fail();
  EXPECT_EQ(reader.Get<uint8_t>(), 1u);
  EXPECT_FALSE(reader.ok());
  EXPECT_FALSE(reader.Done());
}

TEST(ByteReader, TakesBytesOfEitherType) {
  const std::array<std::byte, 2> bytes{std::byte{7}, std::byte{0}};
  ByteReader reader{std::span<const std::byte>(bytes)};
  EXPECT_EQ(reader.Get<uint16_t>(), 7u);
  EXPECT_TRUE(reader.Done());
}

}  // namespace
}  // namespace r2cc
