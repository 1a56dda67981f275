// Keeps the verdict under which a NIC's silence was reported, and when it is reported again because more is known.
#ifndef R2CC_HEALTH_VIEW_SILENCE_REPORT_H_
#define R2CC_HEALTH_VIEW_SILENCE_REPORT_H_

#include "base/core/clock.h"
#include "health/view/localise.h"

namespace r2cc::health {

// Pure: time is an argument.
class SilenceReport {
 public:
  // While a rail comes back its pairs answer one by one, and for a moment the others look like a fault of their own.
  static constexpr Nanos kHold = kNanosPerSecond;

  // Takes the present verdict on a silent NIC; `unusable`: it still carries nothing. True once a verdict that is sharper than the reported
  // one has lasted for kHold.
  bool Sharpened(bool unusable, FaultKind kind, Nanos now) {
    if (!unusable || !IsSharper(kind, reported_) || kind != seen_) since_ = now;
    seen_ = kind;
    return now - since_ >= kHold;
  }
  void Report(FaultKind kind, Nanos now) {
    reported_ = seen_ = kind;
    since_ = now;
  }

 private:
  FaultKind reported_ = FaultKind::kNone;
  FaultKind seen_ = FaultKind::kNone;
  Nanos since_ = 0;  // that it is seen
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_VIEW_SILENCE_REPORT_H_
