// That a pair loses large packets, as its probes show it. Plain values.
#ifndef R2CC_HEALTH_EVIDENCE_LARGE_LOSS_H_
#define R2CC_HEALTH_EVIDENCE_LARGE_LOSS_H_

#include <cstdint>

namespace r2cc::health {

struct LargeLoss {
  enum class Way : uint8_t {
    kEither,  // one or both: cannot be told
    kThere,   // from the own end to the peer's
    kBack,
  };
  uint32_t packet_bytes = 0;  // of these none passes, with the IP header; 0: there is no loss
  uint32_t passed_bytes = 0;  // the largest of those that were tried and pass; 0: small ones alone
  Way way = Way::kEither;

  friend bool operator==(const LargeLoss&, const LargeLoss&) = default;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_EVIDENCE_LARGE_LOSS_H_
