// Proves a schedule right by executing it on symbols: a block's value is the set of members whose contributions are in it.
#ifndef R2CC_PLAN_SCHEDULE_CHECK_H_
#define R2CC_PLAN_SCHEDULE_CHECK_H_

#include <cstdint>
#include <functional>
#include <string>

#include "plan/schedule/schedule.h"

namespace r2cc::plan {

// Empty if every execution that schedule.h allows ends with every member having what the collective promises, each contribution in it
// exactly once. Otherwise one line that names the member, lane and step: a peer or block that does not exist, ends of a transfer that
// do not fit, a block sent before anything is in it, a contribution that is added twice, steps whose order is left open although it
// matters, a deadlock with one message a lane, a wrong result.
//
// One execution stands for all: steps on a block are ordered by their counts, which is checked first. Takes time and memory in
// members^2 * blocks / 64.
std::string CheckSchedule(const Schedule& schedule);

// Empty if no step is between two members without a path; otherwise one line that names the member, lane and step.
std::string CheckPaths(const Schedule& schedule, const std::function<bool(uint32_t a, uint32_t b)>& has_path);

}  // namespace r2cc::plan

#endif  // R2CC_PLAN_SCHEDULE_CHECK_H_
