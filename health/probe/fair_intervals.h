// How the budget of active probes is shared among the users whose jobs they are for. Pure.
#ifndef R2CC_HEALTH_PROBE_FAIR_INTERVALS_H_
#define R2CC_HEALTH_PROBE_FAIR_INTERVALS_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "base/core/clock.h"

namespace r2cc::health {

// After which time each user's pairs are probed again. `pairs`: how many each has; `interval_min`: what each pair gets if the budget
// allows. Max-min fair: nobody's interval grows because others have more pairs than he, but for what an equal share of the budget does not
// give him.
std::map<uint32_t, Nanos> FairIntervals(const std::map<uint32_t, size_t>& pairs, Nanos interval_min, double rate_per_s);

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_PROBE_FAIR_INTERVALS_H_
