// A collective of all processes of a world: AllReduces by the executors of CollNet, at a pace of their own, beside the job of flows.
#ifndef R2CC_TESTS_SIM_GROUP_JOB_H_
#define R2CC_TESTS_SIM_GROUP_JOB_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/checkers.h"
#include "tests/sim/group_member.h"

namespace r2cc::sim {

struct GroupPlan {
  uint64_t operations = 0;
  size_t count = 1;  // elements of a vector
  Nanos start = 0;
  Nanos gap = 0;  // from one call to the next, at least
};

// Checks each result, that no two members follow different plans for one operation, and that nobody gives up without a reason.
class GroupJob {
 public:
  // True if the contract lets the group fail: a process is gone, or two had no rail for the deadline.
  using Excused = std::function<bool()>;
  // All outlive it. To be made before the processes' progress is set.
  GroupJob(Checker* checker, const std::vector<Process*>& processes, const GroupPlan& plan, Excused excused);

  // In a turn of the process, before the flows' job.
  void Progress(Process* process);
  // Each member has done all operations, or has failed, or is dead.
  bool done() const;
  // Why not, line by line.
  std::vector<std::string> Unfinished() const;
  // Leaves the group; until then others may need it.
  void Leave(const Process& process);

 private:
  bool IsDone(size_t host) const;
  void Judge(const Process& process, const GroupMember& member);

  Checker* const checker_;
  const std::vector<Process*> processes_;
  const GroupPlan plan_;
  const Excused excused_;
  std::vector<std::unique_ptr<GroupMember>> members_;                                 // by process; null: not yet
  std::vector<bool> over_, left_;                                                     // by process: it is done, or has failed
  std::map<uint64_t, std::pair<collnet::OperationId, collnet::PlanSpec>> schedules_;  // by epoch, as its first member had it
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_GROUP_JOB_H_
