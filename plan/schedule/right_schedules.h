// For tests: one small schedule of each kind, as the generators make it.
#ifndef R2CC_PLAN_SCHEDULE_RIGHT_SCHEDULES_H_
#define R2CC_PLAN_SCHEDULE_RIGHT_SCHEDULES_H_

#include <memory>
#include <vector>

#include "plan/schedule/generators.h"
#include "plan/schedule/schedule.h"

namespace r2cc::plan {

inline std::vector<std::unique_ptr<Schedule>> RightSchedules() {
  std::vector<std::unique_ptr<Schedule>> right;
  const std::vector<double> uneven = {1, 0, 2, 1.5};
  right.push_back(MakeRing(2, 4096));
  right.push_back(MakeRing(5, 4096, {2, 0, 1, 4, 3}, 2));
  right.push_back(MakeRingHalf(Collective::kReduceScatter, 4096, uneven));
  right.push_back(MakeRingHalf(Collective::kAllGather, 4096, uneven));
  for (const Collective collective : {Collective::kAllReduce, Collective::kReduceScatter, Collective::kAllGather})
    right.push_back(MakeDirect(collective, 4096, 3, uneven));
  right.push_back(MakeOptcc(5, 4096, 2, 0.5, 6));
  right.push_back(MakeOptcc(4, 4096, 0, 0.75, 4));
  right.push_back(MakeR2ccAllReduce(5, 4096, {1}, 0.25, 0.25, 2));
  right.push_back(MakeR2ccAllReduce(6, 4096, {2, 3}, 1.0 / 3, 1.0 / 3, 1));
  right.push_back(MakeRecursive(std::vector<double>{1, 0.5, 1, 0.75, 1}, 4096, 1));
  return right;
}

}  // namespace r2cc::plan

#endif  // R2CC_PLAN_SCHEDULE_RIGHT_SCHEDULES_H_
