// The interface to which probes hand their evidence.
#ifndef R2CC_HEALTH_PROBE_SINK_H_
#define R2CC_HEALTH_PROBE_SINK_H_

#include <functional>

#include "health/evidence/evidence.h"

namespace r2cc::health {

// Called on the probe's executor.
using EvidenceSink = std::function<void(const Evidence&)>;

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_PROBE_SINK_H_
