#include "health/probe/rail_wire.h"

#include <algorithm>

namespace r2cc::health {
namespace {

constexpr uint32_t kMagic = 0x50523252;  // "R2RP"
constexpr size_t kMacAt = kRailProbeBytes - sizeof(ProbeMac);

template <typename T>
void Put(RailProbeBytes* bytes, size_t at, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) (*bytes)[at + i] = static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * i));
}

template <typename T>
T Get(std::span<const uint8_t> bytes, size_t at) {
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value |= static_cast<uint64_t>(bytes[at + i]) << (8 * i);
  return static_cast<T>(value);
}

// The length fits the kind and the length field.
bool LengthFits(std::span<const uint8_t> bytes) {
  const size_t field = Get<uint16_t>(bytes, 6);
  switch (static_cast<RailProbeKind>(bytes[5])) {
    case RailProbeKind::kPing:
    case RailProbeKind::kPong: return field == 0 && bytes.size() == kRailProbeBytes;
    case RailProbeKind::kLargePing:
    case RailProbeKind::kLargePong: return field == bytes.size();
    case RailProbeKind::kLargeReceived: return field <= kRailProbeBytesMax && bytes.size() == kRailProbeBytes;
  }
  return false;
}

RailProbeError Check(std::span<const uint8_t> bytes) {
  if (bytes.size() < kRailProbeBytes || bytes.size() > kRailProbeBytesMax) return RailProbeError::kLength;
  if (Get<uint32_t>(bytes, 0) != kMagic) return RailProbeError::kMagic;
  if (bytes[4] != kRailProbeVersion) return RailProbeError::kVersion;
  const std::span<const uint8_t> padding = bytes.subspan(kRailProbeBytes);
  const bool zeros = std::all_of(padding.begin(), padding.end(), [](uint8_t byte) { return byte == 0; });
  const bool nonces = Get<uint64_t>(bytes, 8) != 0 && Get<uint64_t>(bytes, 16) != 0;
  return LengthFits(bytes) && zeros && nonces ? RailProbeError::kNone : RailProbeError::kContents;
}

}  // namespace

RailProbeBytes EncodeRailProbe(const RailProbe& probe, const ProbeMacKey& key) {
  RailProbeBytes bytes{};
  Put(&bytes, 0, kMagic);
  Put(&bytes, 4, kRailProbeVersion);
  Put(&bytes, 5, static_cast<uint8_t>(probe.kind));
  Put(&bytes, 6, probe.bytes);
  Put(&bytes, 8, probe.to_nonce);
  Put(&bytes, 16, probe.from_nonce);
  Put(&bytes, 24, probe.pair);
  Put(&bytes, 32, probe.sequence);
  Put(&bytes, 40, probe.sent_ns);
  Put(&bytes, 48, probe.nic_hash);
  const ProbeMac mac = MacOf(key, {bytes.data(), kMacAt});
  std::copy(mac.begin(), mac.end(), bytes.begin() + kMacAt);
  return bytes;
}

DatagramFilter ProbesTo(const std::vector<uint64_t>& nonces) {
  RailProbeBytes bytes{};
  DatagramFilter filter;
  filter.at = 8;
  Put(&bytes, 0, kMagic);
  std::copy_n(bytes.begin(), filter.head.size(), filter.head.begin());
  for (const uint64_t nonce : nonces) {
    Put(&bytes, filter.at, nonce);
    std::copy_n(bytes.begin() + filter.at, sizeof(nonce), filter.words.emplace_back().begin());
  }
  return filter;
}

std::string Padded(const RailProbeBytes& head, size_t bytes) {
  std::string whole(std::max(bytes, head.size()), '\0');
  std::copy(head.begin(), head.end(), whole.begin());
  return whole;
}

std::optional<RailProbe> DecodeRailProbe(std::span<const uint8_t> bytes, RailProbeError* error) {
  const RailProbeError found = Check(bytes);
  if (error != nullptr) *error = found;
  if (found != RailProbeError::kNone) return std::nullopt;
  RailProbe probe;
  probe.kind = static_cast<RailProbeKind>(bytes[5]);
  probe.to_nonce = Get<uint64_t>(bytes, 8);
  probe.from_nonce = Get<uint64_t>(bytes, 16);
  probe.pair = Get<uint64_t>(bytes, 24);
  probe.sequence = Get<uint64_t>(bytes, 32);
  probe.sent_ns = Get<Nanos>(bytes, 40);
  probe.nic_hash = Get<uint64_t>(bytes, 48);
  probe.bytes = Get<uint16_t>(bytes, 6);
  return probe;
}

bool IsAuthentic(std::span<const uint8_t> bytes, const ProbeMacKey& key) {
  ProbeMac mac;
  std::copy_n(bytes.begin() + kMacAt, mac.size(), mac.begin());
  return SameMac(mac, MacOf(key, bytes.first(kMacAt)));
}

}  // namespace r2cc::health
