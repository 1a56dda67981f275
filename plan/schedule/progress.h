// Follows an execution of a schedule by all its members: how far it has come, and which transfers may begin next. Each member's part is a
// MemberProgress, the same by which a member moves bytes; this adds the network: a transfer needs both of its ends.
#ifndef R2CC_PLAN_SCHEDULE_PROGRESS_H_
#define R2CC_PLAN_SCHEDULE_PROGRESS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/core/function_ref.h"
#include "plan/schedule/member_progress.h"
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
  // `transfer` is complete, at both ends; calls `begin` for each that may begin by that.
  void Complete(const Transfer& transfer, Begin begin);

  bool finished() const { return members_left_ == 0; }
  // One line: a step at the head of a queue that waits for ever. Call it when nothing is under way and not all is finished.
  std::string Stuck() const;

 private:
  static constexpr uint32_t kNone = 0xffffffff;
  using Due = MemberProgress::Due;

  // Queues are numbered: twice the lane's number among all followed lanes, one more for receives.
  uint32_t QueueOf(uint32_t member, uint32_t lane, bool receives) const { return 2 * (first_lane_[Local(member)] + lane) + receives; }
  uint32_t Local(uint32_t member) const { return local_.empty() ? member : local_[member]; }
  bool Followed(uint32_t member) const { return local_.empty() || local_[member] != kNone; }
  uint32_t RotationIndex(uint32_t member) const { return rotation_index_.empty() ? kNone : rotation_index_[member]; }

  void Match(uint32_t member, const Due& due, Begin begin);
  void Done(uint32_t member, uint32_t lane, bool receives, Begin begin);
  void ImagesDone(const Transfer& transfer, uint32_t send_index, uint32_t receive_index, Begin begin);

  const Schedule& schedule_;
  std::vector<uint32_t> rotation_;
  std::vector<uint32_t> rotation_index_;
  std::vector<uint32_t> local_;          // by member; empty: itself
  std::vector<MemberProgress> members_;  // that are followed
  std::vector<uint32_t> first_lane_;     // by local member
  std::vector<uint8_t> unmatched_;       // by queue: its step is under way at its member, and the transfer has not begun
  uint32_t members_left_ = 0;            // that are not finished
};

}  // namespace r2cc::plan

#endif  // R2CC_PLAN_SCHEDULE_PROGRESS_H_
