// Shares the budget of active probes among the users whose jobs need them. Pure.
#ifndef R2CC_HEALTH_PROBE_FAIR_INTERVALS_H_
#define R2CC_HEALTH_PROBE_FAIR_INTERVALS_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "base/core/clock.h"

namespace r2cc::health {

// The interval at which each user's pairs are probed. `pairs`: how many pairs each user has; `interval_min`: the interval of each pair if
// the budget allows it. Max-min fair: no user's interval grows because others have more pairs, except beyond an equal share of the budget.
std::map<uint32_t, Nanos> FairIntervals(const std::map<uint32_t, size_t>& pairs, Nanos interval_min, double rate_per_s);

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_PROBE_FAIR_INTERVALS_H_
