#include "netplugin/link/flap_damper.h"

#include <algorithm>

#include "netplugin/flow/tuning.h"

namespace r2cc::net {
double FlapDamper::PenaltyAt(Nanos now) const {
  double penalty = penalty_;
  Nanos passed = std::max<Nanos>(now - at_, 0);
  for (; passed >= tuning::kFlapHalfLife && penalty > 0.01; passed -= tuning::kFlapHalfLife) penalty /= 2;
  // Between the halvings a straight line is close enough.
  return penalty * (1 - static_cast<double>(std::min(passed, tuning::kFlapHalfLife)) / static_cast<double>(2 * tuning::kFlapHalfLife));
}

void FlapDamper::Lost(Nanos now) {
  penalty_ = PenaltyAt(now) + 1;
  at_ = now;
}

Nanos FlapDamper::Hold(Nanos now) const {
  Nanos hold = 0;
  for (double over = PenaltyAt(now) - tuning::kFreeLosses; over > 0 && hold < tuning::kFlapHoldMost; over -= 1)
    hold = std::min(tuning::kFlapHoldMost, hold == 0 ? tuning::kHoldFirst : 2 * hold);
  return hold;
}

}  // namespace r2cc::net
