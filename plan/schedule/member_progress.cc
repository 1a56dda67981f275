#include "plan/schedule/member_progress.h"

#include <algorithm>
#include <utility>

#include "base/core/check.h"

namespace r2cc::plan {

MemberProgress::MemberProgress(const Schedule& schedule, uint32_t member, uint32_t window)
    : schedule_(&schedule),
      member_(member),
      window_(window),
      queues_(2 * size_t{schedule.Lanes(member)}),
      under_way_(queues_.size() * window),
      blocks_(schedule.blocks()) {
  R2CC_CHECK(window >= 1);
  for (uint32_t number = 0; number < queues_.size(); ++number) {
    const uint32_t lane = number / 2;
    Queue& queue = queues_[number];
    queue.next.lane = lane;
    queue.size = number % 2 == 1 ? schedule.Receives(member, lane) : schedule.Sends(member, lane);
    if (queue.size > 0) queue.next.step = StepOf(number, 0);
    steps_left_ += queue.size;
  }
}

Step MemberProgress::StepOf(uint32_t number, uint32_t index) const {
  return number % 2 == 1 ? schedule_->Receive(member_, number / 2, index) : schedule_->Send(member_, number / 2, index);
}

std::span<const MemberProgress::Due> MemberProgress::UnderWay(uint32_t lane, bool receives) const {
  const size_t number = 2 * size_t{lane} + receives;
  return {&under_way_[number * window_], queues_[number].under_way};
}

void MemberProgress::Start(Begin begin) {
  for (uint32_t queue = 0; queue < queues_.size(); ++queue) BeginWhatMay(queue, begin);
}

bool MemberProgress::IsDue(const Step& step, const Block& block) {
  switch (step.kind) {
    case StepKind::kSend: return block.receives == step.after_receives;
    case StepKind::kReceive: return block.receives == step.after_receives && block.sends == step.after_sends;
    case StepKind::kReceiveReduce: return block.receives >= step.after_receives && block.sends == step.after_sends;
  }
  return false;
}

// The next step is not due: it waits for its first block for which it is not.
bool MemberProgress::WaitsForABlock(uint32_t number) {
  Queue& queue = queues_[number];
  for (uint32_t i = 0; i < queue.next.step.blocks; ++i) {
    Block& block = blocks_[queue.next.step.block + i];
    if (IsDue(queue.next.step, block)) continue;
    queue.waits = true;
    queue.waits_next = block.waits;
    block.waits = number;
    return true;
  }
  return false;
}

void MemberProgress::BeginWhatMay(uint32_t number, Begin begin) {
  Queue& queue = queues_[number];
  while (queue.next.index < queue.size && queue.under_way < window_ && !queue.waits && !WaitsForABlock(number)) {
    Due& due = under_way_[size_t{number} * window_ + queue.under_way++];
    due = queue.next;
    if (++queue.next.index < queue.size) queue.next.step = StepOf(number, queue.next.index);
    begin(due);
  }
}

void MemberProgress::Done(uint32_t number, uint32_t index, Begin begin) {
  R2CC_CHECK(number < queues_.size());
  Queue& queue = queues_[number];
  const auto first = under_way_.begin() + static_cast<ptrdiff_t>(size_t{number} * window_), end = first + queue.under_way;
  const auto done = std::find_if(first, end, [index](const Due& due) { return due.index == index; });
  R2CC_CHECK(done != end);
  const Step step = done->step;
  std::move(done + 1, end, done);
  --queue.under_way;
  --steps_left_;
  for (uint32_t i = 0; i < step.blocks; ++i) {
    Block& block = blocks_[step.block + i];
    ++(step.kind == StepKind::kSend ? block.sends : block.receives);
    uint32_t waiting = std::exchange(block.waits, kNone);
    while (waiting != kNone) {
      queues_[waiting].waits = false;
      const uint32_t next = queues_[waiting].waits_next;
      BeginWhatMay(waiting, begin);
      waiting = next;
    }
  }
  BeginWhatMay(number, begin);
}

std::string MemberProgress::Waiting() const {
  for (uint32_t number = 0; number < queues_.size(); ++number) {
    const Queue& queue = queues_[number];
    if (queue.under_way == 0 && queue.next.index == queue.size) continue;
    const Due& due = queue.under_way > 0 ? under_way_[size_t{number} * window_] : queue.next;
    const Block& block = blocks_[due.step.block];
    return "member " + std::to_string(member_) + " lane " + std::to_string(due.lane) + ": " + (number % 2 == 1 ? "receive " : "send ") +
           std::to_string(due.index) + " of block " + std::to_string(due.step.block) +
           (queue.under_way > 0
                ? " waits for its peer " + std::to_string(due.step.peer)
                : " is not due: its block has " + std::to_string(block.receives) + " receives and " + std::to_string(block.sends) +
                      " sends of " + std::to_string(due.step.after_receives) + " and " + std::to_string(due.step.after_sends));
  }
  return "";
}

}  // namespace r2cc::plan
