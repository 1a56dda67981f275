// Computes for how long a rail that came back must not carry data: longer with each recent loss. Pure.
//
// A penalty of one per loss that halves every kFlapHalfLife, as routers damp flapping routes.
#ifndef R2CC_NETPLUGIN_LINK_FLAP_DAMPER_H_
#define R2CC_NETPLUGIN_LINK_FLAP_DAMPER_H_

#include "base/core/clock.h"

namespace r2cc::net {

class FlapDamper {
 public:
  void Lost(Nanos now);
  // How long from now; 0 for a rail that was lost once or twice.
  Nanos Hold(Nanos now) const;

 private:
  double PenaltyAt(Nanos now) const;

  double penalty_ = 0;
  Nanos at_ = 0;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_FLAP_DAMPER_H_
