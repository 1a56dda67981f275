#include "plan/schedule/progress.h"

#include <numeric>

#include "base/core/check.h"

namespace r2cc::plan {

Progress::Progress(const Schedule& schedule, bool use_rotation) : schedule_(schedule), blocks_(schedule.blocks()) {
  if (use_rotation && schedule.Rotation().size() > 1) {
    rotation_.assign(schedule.Rotation().begin(), schedule.Rotation().end());
    rotation_index_.assign(schedule.members(), kNone);
    for (uint32_t i = 0; i < rotation_.size(); ++i) rotation_index_[rotation_[i]] = i;
    local_.assign(schedule.members(), kNone);
    for (uint32_t member = 0; member < schedule.members(); ++member) {
      if (rotation_index_[member] != kNone && rotation_index_[member] != 0) continue;
      local_[member] = static_cast<uint32_t>(followed_.size());
      followed_.push_back(member);
    }
  } else {
    followed_.resize(schedule.members());
    std::iota(followed_.begin(), followed_.end(), 0);
  }
  for (const uint32_t member : followed_) {
    first_lane_.push_back(static_cast<uint32_t>(member_of_.size()));
    for (uint32_t lane = 0; lane < schedule.Lanes(member); ++lane) {
      member_of_.push_back(member);
      // A lane of a member outside the rotation that serves one inside is followed only if it serves the first.
      const auto followed = [&](uint32_t size, bool receives) {
        if (size == 0 || rotation_.empty() || rotation_index_[member] == 0) return size;
        const Step step = receives ? schedule.Receive(member, lane, 0) : schedule.Send(member, lane, 0);
        return Followed(step.peer) ? size : 0;
      };
      Queue& sends = queues_.emplace_back();
      sends.size = followed(schedule.Sends(member, lane), false);
      Queue& receives = queues_.emplace_back();
      receives.size = followed(schedule.Receives(member, lane), true);
    }
  }
  for (const Queue& queue : queues_) steps_left_ += queue.size;
  cells_.resize(followed_.size() * size_t{blocks_});
}

void Progress::Start(Begin begin) {
  for (uint32_t queue = 0; queue < queues_.size(); ++queue) Load(queue, begin);
}

bool Progress::IsDue(const Step& step, const Cell& cell) {
  switch (step.kind) {
    case StepKind::kSend: return cell.receives == step.after_receives;
    case StepKind::kReceive: return cell.receives == step.after_receives && cell.sends == step.after_sends;
    case StepKind::kReceiveReduce: return cell.receives >= step.after_receives && cell.sends == step.after_sends;
  }
  return false;
}

// Puts the queue's next step at its head.
void Progress::Load(uint32_t number, Begin begin) {
  Queue& queue = queues_[number];
  if (queue.next == queue.size) return;
  const uint32_t member = member_of_[number / 2];
  const uint32_t lane = number / 2 - first_lane_[Local(member)];
  queue.head = number % 2 == 1 ? schedule_.Receive(member, lane, queue.next) : schedule_.Send(member, lane, queue.next);
  Look(number, begin);
}

// Is the head due by now? If not, it waits for its first block that is not.
void Progress::Look(uint32_t number, Begin begin) {
  Queue& queue = queues_[number];
  const uint32_t member = member_of_[number / 2];
  for (uint32_t i = 0; i < queue.head.blocks; ++i) {
    Cell& cell = cells_[CellOf(member, queue.head.block + i)];
    if (IsDue(queue.head, cell)) continue;
    queue.waits_next = cell.waits;
    cell.waits = number;
    return;
  }
  queue.due = true;
  Match(number, begin);
}

// Begins the transfer if the other end is due too.
void Progress::Match(uint32_t number, Begin begin) {
  Queue& mine = queues_[number];
  const uint32_t member = member_of_[number / 2];
  const uint32_t lane = number / 2 - first_lane_[Local(member)];
  const bool receives = number % 2 == 1;
  // Inside a rotation, what the first member does with the one i places on is what the one i places back does with the first.
  const bool inside = RotationIndex(member) == 0 && RotationIndex(mine.head.peer) != kNone;
  const uint32_t other_member = inside ? member : mine.head.peer;
  const uint32_t other = QueueOf(other_member, mine.head.peer_lane, !receives);
  Queue& theirs = queues_[other];
  if (!theirs.due) return;
  if (inside) {
    if ((rotation_index_[mine.head.peer] + rotation_index_[theirs.head.peer]) % rotation_.size() != 0) return;
  } else if (theirs.head.peer != member || theirs.head.peer_lane != lane) {
    return;
  }
  mine.due = theirs.due = false;
  const Queue& send = receives ? theirs : mine;
  const Queue& receive = receives ? mine : theirs;
  if (receives) {
    begin({other_member, mine.head.peer_lane, member, lane, send.head, receive.head});
  } else {
    begin({member, lane, other_member, mine.head.peer_lane, send.head, receive.head});
  }
}

void Progress::Count(uint32_t Cell::*count, uint32_t member, const Step& step, Begin begin) {
  for (uint32_t i = 0; i < step.blocks; ++i) {
    Cell& cell = cells_[CellOf(member, step.block + i)];
    ++(cell.*count);
    uint32_t waiting = cell.waits;
    cell.waits = kNone;
    while (waiting != kNone) {
      const uint32_t next = queues_[waiting].waits_next;
      Look(waiting, begin);
      waiting = next;
    }
  }
}

// What a member outside the rotation did with the first member it did with all of them.
void Progress::CountImages(const Transfer& transfer, uint32_t send_index, uint32_t receive_index, Begin begin) {
  const bool from_inside = RotationIndex(transfer.from) == 0;
  const bool to_inside = RotationIndex(transfer.to) == 0;
  if (from_inside == to_inside) return;
  for (uint32_t i = 1; i < rotation_.size(); ++i) {
    if (from_inside) {
      const Step send = schedule_.Send(rotation_[i], transfer.from_lane, send_index);
      Count(&Cell::receives, transfer.to, schedule_.Receive(transfer.to, send.peer_lane, receive_index), begin);
    } else {
      const Step receive = schedule_.Receive(rotation_[i], transfer.to_lane, receive_index);
      Count(&Cell::sends, transfer.from, schedule_.Send(transfer.from, receive.peer_lane, send_index), begin);
    }
  }
}

void Progress::Complete(const Transfer& transfer, Begin begin) {
  const uint32_t send = QueueOf(transfer.from, transfer.from_lane, false);
  const uint32_t receive = QueueOf(transfer.to, transfer.to_lane, true);
  const uint32_t send_index = queues_[send].next++;
  const uint32_t receive_index = queues_[receive].next++;
  steps_left_ -= 2;
  Count(&Cell::sends, transfer.from, transfer.send, begin);
  Count(&Cell::receives, transfer.to, transfer.receive, begin);
  if (!rotation_.empty()) CountImages(transfer, send_index, receive_index, begin);
  Load(send, begin);
  Load(receive, begin);
}

std::string Progress::Stuck() const {
  for (uint32_t number = 0; number < queues_.size(); ++number) {
    const Queue& queue = queues_[number];
    if (queue.next == queue.size) continue;
    const uint32_t member = member_of_[number / 2];
    return "member " + std::to_string(member) + " lane " + std::to_string(number / 2 - first_lane_[Local(member)]) + ": " +
           (number % 2 == 1 ? "receive " : "send ") + std::to_string(queue.next) + " of block " + std::to_string(queue.head.block) +
           (queue.due ? " waits for its peer " + std::to_string(queue.head.peer)
                      : " is not due: its block has " + std::to_string(cells_[CellOf(member, queue.head.block)].receives) +
                            " receives and " + std::to_string(cells_[CellOf(member, queue.head.block)].sends) + " sends of " +
                            std::to_string(queue.head.after_receives) + " and " + std::to_string(queue.head.after_sends)) +
           " for ever";
  }
  return "";
}

}  // namespace r2cc::plan
