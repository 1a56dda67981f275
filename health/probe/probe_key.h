// The keys of rail probes: X25519 to agree on one, HMAC-SHA-256 to use it, both libcrypto's. Pure.
#ifndef R2CC_HEALTH_PROBE_PROBE_KEY_H_
#define R2CC_HEALTH_PROBE_PROBE_KEY_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "health/evidence/probe_public_key.h"

namespace r2cc::health {

using ProbeSecret = std::array<uint8_t, 32>;  // random; X25519 makes no difference of the first byte's lowest three bits
using ProbeMacKey = std::array<uint8_t, 32>;
using ProbeMac = std::array<uint8_t, 16>;

// By which a key is named in probes: its first bits, and not 0.
uint64_t NonceOf(const ProbePublicKey& key);

// One key pair of a daemon, with the number by which probes name it.
class ProbeIdentity {
 public:
  explicit ProbeIdentity(const ProbeSecret& secret);

  uint64_t nonce() const { return nonce_; }
  const ProbePublicKey& public_key() const { return public_key_; }

  // The secret that only this daemon and the one with the other key pair can derive. Nothing if `peer` is no valid key.
  std::optional<ProbeMacKey> Agree(uint64_t peer_nonce, const ProbePublicKey& peer) const;

 private:
  ProbeSecret secret_;
  ProbePublicKey public_key_{};
  uint64_t nonce_ = 0;
};

// HMAC-SHA-256, its first 128 bits.
ProbeMac MacOf(const ProbeMacKey& key, std::span<const uint8_t> bytes);
// In constant time.
bool SameMac(const ProbeMac& a, const ProbeMac& b);

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_PROBE_PROBE_KEY_H_
