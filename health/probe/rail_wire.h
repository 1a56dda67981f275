// The datagram of a rail probe: a ping from one daemon's NIC to another's, and the pong that answers it. Pure.
//
// 72 bytes, little endian; a large one has zeros after them:
//    0 u32 magic          4 u8 version     5 u8 kind      6 u16 bytes, for large probes; else zero
//    8 u64 to_nonce      16 u64 from_nonce               24 u64 pair
//   32 u64 sequence      40 u64 sent_ns                  48 u64 nic_hash
//   56 16 bytes: HMAC-SHA-256 of the bytes before, cut, under the key of the two nonces
#ifndef R2CC_HEALTH_PROBE_RAIL_WIRE_H_
#define R2CC_HEALTH_PROBE_RAIL_WIRE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "health/io/datagram.h"
#include "health/probe/probe_key.h"

namespace r2cc::health {

constexpr size_t kRailProbeBytes = 72;
constexpr uint8_t kRailProbeVersion = 2;
// Limit of a large probe, so that it fits into a packet of 9216 bytes. Larger ones are not worth their cost: no switch of a rail has a
// limit above that.
constexpr size_t kRailProbeBytesMax = 9216 - 28;

// The last three are sent only to daemons that accept them (NicStatus::probe_packet_max).
enum class RailProbeKind : uint8_t {
  kPing = 1,
  kPong = 2,
  kLargePing = 3,  // answered by a kLargePong of its length and a kLargeReceived, so that each direction is judged
  kLargePong = 4,
  kLargeReceived = 5,  // 72 bytes: the kLargePing has come, or cannot be answered
};

struct RailProbe {
  RailProbeKind kind = RailProbeKind::kPing;
  // Each run of a daemon makes a key each hour, and publishes its number and public half in its view. A probe names the keys of both ends,
  // and its MAC is under a key that only these two can derive. So no other sender, and no earlier run, is answered or believed. Never 0.
  uint64_t to_nonce = 0;
  uint64_t from_nonce = 0;
  // Values for the pinging daemon; a pong returns them unchanged.
  uint64_t pair = 0;
  uint64_t sequence = 0;
  Nanos sent_ns = 0;  // CLOCK_MONOTONIC of the pinging node
  // Fnv1a64 of the NODE/NIC that is pinged: one that came in at another NIC by the kernel's routes is no answer of this one.
  uint64_t nic_hash = 0;
  // kLargePing, kLargePong: of the whole datagram. kLargeReceived: of the ping that came; 0: an answer of that length cannot leave, as this
  // kernel knows of less on the way. The others: 0.
  uint16_t bytes = 0;

  friend bool operator==(const RailProbe&, const RailProbe&) = default;
};

using RailProbeBytes = std::array<uint8_t, kRailProbeBytes>;

// Encodes the first 72 bytes; Padded() makes a large one whole. The MAC covers only these: they contain the length, and the bytes after
// them must be zeros. So nothing can be changed without notice, and 9000 bytes cost as little as 72.
RailProbeBytes EncodeRailProbe(const RailProbe& probe, const ProbeMacKey& key);

// `head` and zeros behind it, `bytes` in all; at least the head.
std::string Padded(const RailProbeBytes& head, size_t bytes);

// Probes that carry one of `nonces` as to_nonce. Only nodes of the cluster know these numbers, and programs that read the rail's network.
DatagramFilter ProbesTo(const std::vector<uint64_t>& nonces);

// Why a datagram is no probe.
enum class RailProbeError : uint8_t { kNone, kLength, kMagic, kVersion, kContents };

// Bytes of the headers of IP, without options, and UDP.
inline size_t RailProbeHeaderBytes(const std::string& address) { return address.find(':') == std::string::npos ? 28 : 48; }

// The probe in `bytes`, or nothing and the reason in `error` (may be null). Reads nothing outside of `bytes`. IsAuthentic checks its
// sender.
std::optional<RailProbe> DecodeRailProbe(std::span<const uint8_t> bytes, RailProbeError* error = nullptr);

// REQUIRES: DecodeRailProbe found a probe in `bytes`.
bool IsAuthentic(std::span<const uint8_t> bytes, const ProbeMacKey& key);

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_PROBE_RAIL_WIRE_H_
