#include "plan/schedule/member_progress.h"

#include "base/core/check.h"

namespace r2cc::plan {

MemberProgress::MemberProgress(const Schedule& schedule, uint32_t member)
    : schedule_(&schedule), member_(member), queues_(2 * size_t{schedule.Lanes(member)}), blocks_(schedule.blocks()) {
  for (uint32_t number = 0; number < queues_.size(); ++number) {
    const uint32_t lane = number / 2;
    queues_[number].head.lane = lane;
    queues_[number].size = number % 2 == 1 ? schedule.Receives(member, lane) : schedule.Sends(member, lane);
    steps_left_ += queues_[number].size;
  }
}

void MemberProgress::Start(Begin begin) {
  for (uint32_t queue = 0; queue < queues_.size(); ++queue) Load(queue, begin);
}

bool MemberProgress::IsDue(const Step& step, const Block& block) {
  switch (step.kind) {
    case StepKind::kSend: return block.receives == step.after_receives;
    case StepKind::kReceive: return block.receives == step.after_receives && block.sends == step.after_sends;
    case StepKind::kReceiveReduce: return block.receives >= step.after_receives && block.sends == step.after_sends;
  }
  return false;
}

// Puts the queue's next step at its head.
void MemberProgress::Load(uint32_t number, Begin begin) {
  Queue& queue = queues_[number];
  Due& head = queue.head;
  if (head.index == queue.size) return;
  head.step = number % 2 == 1 ? schedule_->Receive(member_, head.lane, head.index) : schedule_->Send(member_, head.lane, head.index);
  Look(number, begin);
}

// Is the head due by now? If not, it waits for its first block that is not.
void MemberProgress::Look(uint32_t number, Begin begin) {
  Queue& queue = queues_[number];
  for (uint32_t i = 0; i < queue.head.step.blocks; ++i) {
    Block& block = blocks_[queue.head.step.block + i];
    if (IsDue(queue.head.step, block)) continue;
    queue.waits_next = block.waits;
    block.waits = number;
    return;
  }
  queue.under_way = true;
  begin(queue.head);
}

void MemberProgress::Done(uint32_t number, Begin begin) {
  R2CC_CHECK(number < queues_.size() && queues_[number].under_way);
  Queue& queue = queues_[number];
  queue.under_way = false;
  ++queue.head.index;
  --steps_left_;
  const Step& step = queue.head.step;
  for (uint32_t i = 0; i < step.blocks; ++i) {
    Block& block = blocks_[step.block + i];
    ++(step.kind == StepKind::kSend ? block.sends : block.receives);
    uint32_t waiting = block.waits;
    block.waits = kNone;
    while (waiting != kNone) {
      const uint32_t next = queues_[waiting].waits_next;
      Look(waiting, begin);
      waiting = next;
    }
  }
  Load(number, begin);
}

std::string MemberProgress::Waiting() const {
  for (size_t number = 0; number < queues_.size(); ++number) {
    const Queue& queue = queues_[number];
    const auto& [lane, index, step] = queue.head;
    if (index == queue.size) continue;
    const Block& block = blocks_[step.block];
    return "member " + std::to_string(member_) + " lane " + std::to_string(lane) + ": " + (number % 2 == 1 ? "receive " : "send ") +
           std::to_string(index) + " of block " + std::to_string(step.block) +
           (queue.under_way
                ? " waits for its peer " + std::to_string(step.peer)
                : " is not due: its block has " + std::to_string(block.receives) + " receives and " + std::to_string(block.sends) +
                      " sends of " + std::to_string(step.after_receives) + " and " + std::to_string(step.after_sends));
  }
  return "";
}

}  // namespace r2cc::plan
