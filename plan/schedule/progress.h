// How far an execution of a schedule has come, and what may begin next: the rules of schedule.h, for whoever carries transfers out.
#ifndef R2CC_PLAN_SCHEDULE_PROGRESS_H_
#define R2CC_PLAN_SCHEDULE_PROGRESS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/core/function_ref.h"
#include "plan/schedule/schedule.h"

namespace r2cc::plan {

struct Transfer {
  uint32_t from = 0;
  uint32_t from_lane = 0;
  uint32_t to = 0;
  uint32_t to_lane = 0;
  Step send;
  Step receive;
};

class Progress {
 public:
  using Begin = FunctionRef<void(const Transfer&)>;

  // `schedule` must outlive it, and its peers, lanes and blocks must exist. With `use_rotation`, only the first member of the
  // schedule's rotation and those outside it are followed: a transfer between two members of the rotation is shown as one from the
  // first, received by the first in the other's stead.
  Progress(const Schedule& schedule, bool use_rotation);

  // Calls `begin` for each transfer that may begin at once.
  void Start(Begin begin);
  // `transfer` is complete; calls `begin` for each that may begin by that.
  void Complete(const Transfer& transfer, Begin begin);

  bool finished() const { return steps_left_ == 0; }
  // One line: a step at the head of a queue that waits for ever. Call it when nothing is under way and not all is finished.
  std::string Stuck() const;

 private:
  static constexpr uint32_t kNone = 0xffffffff;

  struct Queue {
    Step head;
    uint32_t next = 0;
    uint32_t size = 0;
    uint32_t waits_next = kNone;  // the next queue that waits for the same block
    bool due = false;             // the head is due, and its transfer has not begun
  };
  // A block at one member.
  struct Cell {
    uint32_t receives = 0;  // complete
    uint32_t sends = 0;
    uint32_t waits = kNone;  // the first queue that waits for it
  };

  // Queues are numbered: twice the lane's number among all followed lanes, one more for receives.
  uint32_t QueueOf(uint32_t member, uint32_t lane, bool receives) const { return 2 * (first_lane_[Local(member)] + lane) + receives; }
  uint32_t Local(uint32_t member) const { return local_.empty() ? member : local_[member]; }
  size_t CellOf(uint32_t member, uint32_t block) const { return size_t{Local(member)} * blocks_ + block; }
  bool Followed(uint32_t member) const { return local_.empty() || local_[member] != kNone; }
  uint32_t RotationIndex(uint32_t member) const { return rotation_index_.empty() ? kNone : rotation_index_[member]; }

  static bool IsDue(const Step& step, const Cell& cell);
  void Load(uint32_t queue, Begin begin);
  void Look(uint32_t queue, Begin begin);
  void Match(uint32_t queue, Begin begin);
  void Count(uint32_t Cell::*count, uint32_t member, const Step& step, Begin begin);
  void CountImages(const Transfer& transfer, uint32_t send_index, uint32_t receive_index, Begin begin);

  const Schedule& schedule_;
  uint32_t blocks_;
  std::vector<uint32_t> rotation_;
  std::vector<uint32_t> rotation_index_;
  std::vector<uint32_t> local_;  // by member; empty: itself
  std::vector<uint32_t> followed_;
  std::vector<uint32_t> first_lane_;  // by local member
  std::vector<uint32_t> member_of_;   // by lane
  std::vector<Queue> queues_;
  std::vector<Cell> cells_;  // by local member and block
  uint64_t steps_left_ = 0;
};

}  // namespace r2cc::plan

#endif  // R2CC_PLAN_SCHEDULE_PROGRESS_H_
