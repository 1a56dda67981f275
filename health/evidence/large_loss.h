// Describes the loss of large packets on one pair, as its probes show it. Plain values.
#ifndef R2CC_HEALTH_EVIDENCE_LARGE_LOSS_H_
#define R2CC_HEALTH_EVIDENCE_LARGE_LOSS_H_

#include <cstdint>

namespace r2cc::health {

struct LargeLoss {
  enum class Way : uint8_t {
    kEither,  // one direction or both: not known which
    kThere,   // from the own end to the peer's
    kBack,
  };
  uint32_t packet_bytes = 0;  // of these none passes, with the IP header; 0: there is no loss
  uint32_t passed_bytes = 0;  // the largest size that was tried and passes; 0: small ones only
  Way way = Way::kEither;

  friend bool operator==(const LargeLoss&, const LargeLoss&) = default;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_EVIDENCE_LARGE_LOSS_H_
