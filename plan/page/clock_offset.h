// Reads how far this process's CLOCK_MONOTONIC is ahead of the machine's. A time namespace (`unshare -T`, a restored container) has a
// CLOCK_MONOTONIC of its own, and so have all clocks that nobody sets. The page and the ring name their writer's offset, so that the times
// in them mean the same to both ends.
#ifndef R2CC_PLAN_PAGE_CLOCK_OFFSET_H_
#define R2CC_PLAN_PAGE_CLOCK_OFFSET_H_

#include <string>

#include "base/core/clock.h"

namespace r2cc::plan {

// The offset in a /proc/PID/timens_offsets; 0 if there is none.
Nanos ParseMonotonicOffset(const std::string& timens_offsets);

// The offset of this process. 0 if the kernel has no time namespaces, or /proc does not show them. Reads files.
Nanos OwnMonotonicOffset();

}  // namespace r2cc::plan

#endif  // R2CC_PLAN_PAGE_CLOCK_OFFSET_H_
