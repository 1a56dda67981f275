// Follows one member's part of a schedule: which of its steps may begin, decided by which of its own are done. It applies the rules of
// schedule.h for the code that moves the bytes of this member. It asks nothing of the others, so each member may keep its own, in a process
// of its own; progress.h joins those of all members for the checker and the simulator. Events in, actions out: no I/O, no clock; one thread
// at a time.
//
// The vector is the caller's. A lane's sends begin in their order, and so do its receives; at most `window` of each are under way, each
// from `begin` to its Done. schedule.h has them one at a time, a window of 1. A wider one changes no result and brings no deadlock: what a
// step must come after is counted at its blocks and not by its lane, so in any order the next step of an execution with a window of 1 can
// begin once all those before it are done.
//   - A send that is due: the bytes of its blocks may be read, more than once, until SendDone(), and do not change until then. It is done
//     when nobody will read them again: the peer has placed all of them and has acknowledged that from end to end. That the network or the
//     peer's NIC has them is not enough, because they may be asked for again over another rail. A send whose bytes were copied, and that is
//     replayed from the copy, may count as done at once.
//   - A receive that is due: the bytes of its blocks may be written from now on, and not before. It is done when all are placed and, if the
//     step adds, added.
//   - A receive waits for the sends of the blocks that it changes. So a late acknowledgement costs time, and an early SendDone() spoils
//     bytes that are still to be sent.
// The two ends of a transfer are done independently, in either order.
//
// The network must keep one rule: the k-th send from (member, lane) to (peer, peer_lane) meets the k-th receive there from here. A lane may
// change its peer from step to step, so that takes one flow, whose messages stay in order, for each ordered pair of (member, lane) and
// (peer, peer_lane) that has transfers. Between flows there is no order to keep. A message whose receive is not due yet waits, at its
// sender or as a copy.
#ifndef R2CC_PLAN_SCHEDULE_MEMBER_PROGRESS_H_
#define R2CC_PLAN_SCHEDULE_MEMBER_PROGRESS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/core/function_ref.h"
#include "plan/schedule/schedule.h"

namespace r2cc::plan {

class MemberProgress {
 public:
  // A step that may begin: the `index`-th send, or receive, of its lane.
  struct Due {
    uint32_t lane = 0;
    uint32_t index = 0;
    Step step;

    bool receives() const { return step.kind != StepKind::kSend; }
  };
  // Called for each step as it becomes due, once. Must not call back.
  using Begin = FunctionRef<void(const Due&)>;

  // `schedule` must outlive it and have passed CheckSchedule(); otherwise deadlocks and wrong results are possible. Its blocks must exist.
  // `window` is at least 1.
  MemberProgress(const Schedule& schedule, uint32_t member, uint32_t window);

  // Call it once. Calls `begin` for each step that may begin at once.
  void Start(Begin begin);
  // The lane's `index`-th send, or receive, is done; calls `begin` for each step that may begin by that. One that is not under way ends the
  // process.
  void SendDone(uint32_t lane, uint32_t index, Begin begin) { Done(2 * lane, index, begin); }
  void ReceiveDone(uint32_t lane, uint32_t index, Begin begin) { Done(2 * lane + 1, index, begin); }

  uint32_t member() const { return member_; }
  bool finished() const { return steps_left_ == 0; }
  // The steps that are under way on a lane, in their order. Until the next call of another method.
  std::span<const Due> UnderWay(uint32_t lane, bool receives) const;
  // One line: the first step that is under way or not due yet; empty if finished. For people.
  std::string Waiting() const;

 private:
  static constexpr uint32_t kNone = 0xffffffff;

  struct Queue {
    Due next;  // to begin
    uint32_t size = 0;
    uint32_t under_way = 0;       // begun, and not done
    uint32_t waits_next = kNone;  // the next queue that waits for the same block
    bool waits = false;           // for a block
  };
  struct Block {
    uint32_t receives = 0;  // done
    uint32_t sends = 0;
    uint32_t waits = kNone;  // the first queue that waits for it
  };

  static bool IsDue(const Step& step, const Block& block);
  Step StepOf(uint32_t queue, uint32_t index) const;
  bool WaitsForABlock(uint32_t queue);
  void BeginWhatMay(uint32_t queue, Begin begin);
  void Done(uint32_t queue, uint32_t index, Begin begin);

  const Schedule* schedule_;
  uint32_t member_;
  uint32_t window_;
  uint64_t steps_left_ = 0;
  std::vector<Queue> queues_;   // twice the lane's number: its sends; one more: its receives
  std::vector<Due> under_way_;  // `window` places for each queue, in the queues' order
  std::vector<Block> blocks_;
};

}  // namespace r2cc::plan

#endif  // R2CC_PLAN_SCHEDULE_MEMBER_PROGRESS_H_
