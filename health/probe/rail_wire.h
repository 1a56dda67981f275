// The datagram of a rail probe: a ping from one daemon's NIC to another's, and the pong that answers it. Pure.
//
// 72 bytes, little endian:
//    0 u32 magic          4 u8 version     5 u8 kind      6 u16 zero
//    8 u64 to_nonce      16 u64 from_nonce               24 u64 pair
//   32 u64 sequence      40 u64 sent_ns                  48 u64 nic_hash
//   56 16 bytes: HMAC-SHA-256 of the bytes before, cut, under the key that the two nonces stand for
#ifndef R2CC_HEALTH_PROBE_RAIL_WIRE_H_
#define R2CC_HEALTH_PROBE_RAIL_WIRE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/core/clock.h"
#include "health/probe/probe_key.h"

namespace r2cc::health {

constexpr size_t kRailProbeBytes = 72;
constexpr uint8_t kRailProbeVersion = 2;

enum class RailProbeKind : uint8_t { kPing = 1, kPong = 2 };

struct RailProbe {
  RailProbeKind kind = RailProbeKind::kPing;
  // Each life of a daemon makes up a key each hour, and tells its number and public half to the other daemons in its view. A probe names
  // both ends' keys, and its MAC is under what only these two can make of them: so nobody else, and no former life, is answered or
  // believed. Never 0.
  uint64_t to_nonce = 0;
  uint64_t from_nonce = 0;
  // What the pinging daemon wants to know again; a pong brings them back unchanged.
  uint64_t pair = 0;
  uint64_t sequence = 0;
  Nanos sent_ns = 0;  // CLOCK_MONOTONIC of the pinging node
  // Fnv1a64 of the NODE/NIC that is pinged: one that came in at another NIC by the kernel's routes is no answer of this one.
  uint64_t nic_hash = 0;

  friend bool operator==(const RailProbe&, const RailProbe&) = default;
};

using RailProbeBytes = std::array<uint8_t, kRailProbeBytes>;

RailProbeBytes EncodeRailProbe(const RailProbe& probe, const ProbeMacKey& key);

// Why a datagram is no probe.
enum class RailProbeError : uint8_t { kNone, kLength, kMagic, kVersion, kContents };

// The probe in `bytes`, or nothing and the reason in `error` (may be null). Reads nothing outside of `bytes`. Whose it is, IsAuthentic
// tells.
std::optional<RailProbe> DecodeRailProbe(std::span<const uint8_t> bytes, RailProbeError* error = nullptr);

// REQUIRES: DecodeRailProbe found a probe in `bytes`.
bool IsAuthentic(std::span<const uint8_t> bytes, const ProbeMacKey& key);

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_PROBE_RAIL_WIRE_H_
