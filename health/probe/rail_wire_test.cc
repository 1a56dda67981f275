#include "health/probe/rail_wire.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

namespace r2cc::health {
namespace {

constexpr ProbeMacKey kKey = {1, 2, 3};

RailProbe Sample() { return {RailProbeKind::kPing, 0x1111, 0x2222, 7, 0x1234'5678'9abc'def0, 123'456'789'012, 0xfeed'beef'0bad'cafe}; }

TEST(RailWire, WrittenValuesAreRead) {
  RailProbe probe = Sample();
  RailProbeError error = RailProbeError::kLength;
  EXPECT_EQ(DecodeRailProbe(EncodeRailProbe(probe, kKey), &error), probe);
  EXPECT_EQ(error, RailProbeError::kNone);
  probe.kind = RailProbeKind::kPong;
  probe.sent_ns = -1;
  EXPECT_EQ(DecodeRailProbe(EncodeRailProbe(probe, kKey)), probe);
}

TEST(RailWire, TheLayoutIsFixed) {
  const RailProbeBytes bytes = EncodeRailProbe(Sample(), kKey);
  const std::vector<uint8_t> head(bytes.begin(), bytes.begin() + 12);
  EXPECT_EQ(head, (std::vector<uint8_t>{'R', '2', 'R', 'P', 2, 1, 0, 0, 0x11, 0x11, 0, 0}));
  EXPECT_EQ(bytes[32], 0xf0);  // little endian
}

TEST(RailWire, EveryLengthButTheRightOneIsRefused) {
  const RailProbeBytes whole = EncodeRailProbe(Sample(), kKey);
  std::vector<uint8_t> bytes(whole.begin(), whole.end());
  bytes.resize(kRailProbeBytesMax + 1);
  for (size_t size = 0; size <= bytes.size(); ++size) {
    if (size == kRailProbeBytes) continue;
    RailProbeError error = RailProbeError::kNone;
    EXPECT_FALSE(DecodeRailProbe({bytes.data(), size}, &error).has_value()) << size;
    EXPECT_EQ(error, size < kRailProbeBytes || size > kRailProbeBytesMax ? RailProbeError::kLength : RailProbeError::kContents) << size;
  }
}

std::span<const uint8_t> AsBytes(const std::string& text) { return {reinterpret_cast<const uint8_t*>(text.data()), text.size()}; }

TEST(RailWire, ALargeOneIsAsLongAsItsField) {
  for (const RailProbeKind kind : {RailProbeKind::kLargePing, RailProbeKind::kLargePong}) {
    RailProbe probe = Sample();
    probe.kind = kind;
    probe.bytes = 8972;
    std::string whole = Padded(EncodeRailProbe(probe, kKey), probe.bytes);
    ASSERT_EQ(whole.size(), 8972u);
    EXPECT_EQ(DecodeRailProbe(AsBytes(whole)), probe);
    EXPECT_TRUE(IsAuthentic(AsBytes(whole), kKey));
    EXPECT_FALSE(DecodeRailProbe(AsBytes(whole.substr(0, 8971))).has_value());
    EXPECT_FALSE(DecodeRailProbe(AsBytes(whole + '\0')).has_value());
    // No byte behind the head can be another one.
    for (const size_t at : {kRailProbeBytes, size_t{4000}, whole.size() - 1}) {
      std::string bad = whole;
      bad[at] = 1;
      EXPECT_FALSE(DecodeRailProbe(AsBytes(bad)).has_value()) << at;
    }
    // Nor can another length be claimed: that is in the head.
    std::string longer = whole + '\0';
    ++longer[6];
    EXPECT_TRUE(DecodeRailProbe(AsBytes(longer)).has_value());
    EXPECT_FALSE(IsAuthentic(AsBytes(longer), kKey));
  }
  RailProbe received = Sample();
  received.kind = RailProbeKind::kLargeReceived;
  received.bytes = 8972;
  EXPECT_EQ(DecodeRailProbe(EncodeRailProbe(received, kKey)), received);
  EXPECT_FALSE(DecodeRailProbe(AsBytes(Padded(EncodeRailProbe(received, kKey), 8972))).has_value());
  RailProbe small = Sample();
  small.bytes = 72;
  EXPECT_FALSE(DecodeRailProbe(EncodeRailProbe(small, kKey)).has_value());
}

TEST(RailWire, EveryFlippedBitIsNoticed) {
  const RailProbeBytes good = EncodeRailProbe(Sample(), kKey);
  EXPECT_TRUE(IsAuthentic(good, kKey));
  for (size_t bit = 0; bit < kRailProbeBytes * 8; ++bit) {
    RailProbeBytes bad = good;
    bad[bit / 8] ^= static_cast<uint8_t>(1U << (bit % 8));
    EXPECT_FALSE(IsAuthentic(bad, kKey)) << bit;
    RailProbeError error = RailProbeError::kNone;
    DecodeRailProbe(bad, &error);
    if (bit < 40) {
      EXPECT_EQ(error, bit < 32 ? RailProbeError::kMagic : RailProbeError::kVersion) << bit;
    }
  }
}

TEST(RailWire, AnotherKeyIsAnotherSender) {
  ProbeMacKey other = kKey;
  other.back() ^= 1;
  EXPECT_FALSE(IsAuthentic(EncodeRailProbe(Sample(), other), kKey));
}

TEST(RailWire, ANonceOfZeroIsNobodys) {
  RailProbe probe = Sample();
  probe.to_nonce = 0;
  RailProbeError error = RailProbeError::kNone;
  EXPECT_FALSE(DecodeRailProbe(EncodeRailProbe(probe, kKey), &error).has_value());
  EXPECT_EQ(error, RailProbeError::kContents);
  probe = Sample();
  probe.from_nonce = 0;
  EXPECT_FALSE(DecodeRailProbe(EncodeRailProbe(probe, kKey)).has_value());
}

}  // namespace
}  // namespace r2cc::health
