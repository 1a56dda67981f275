// Defines the public half of a daemon's key for rail probes, with which each other daemon derives a common key.
#ifndef R2CC_HEALTH_EVIDENCE_PROBE_PUBLIC_KEY_H_
#define R2CC_HEALTH_EVIDENCE_PROBE_PUBLIC_KEY_H_

#include <array>
#include <cstdint>

namespace r2cc::health {

// X25519 (RFC 7748).
using ProbePublicKey = std::array<uint8_t, 32>;

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_EVIDENCE_PROBE_PUBLIC_KEY_H_
