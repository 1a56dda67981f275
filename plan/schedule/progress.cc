#include "plan/schedule/progress.h"

namespace r2cc::plan {
namespace {

constexpr uint32_t kOneAtATime = 1;  // what schedule.h promises of memory is proved with

}  // namespace

Progress::Progress(const Schedule& schedule, bool use_rotation) : schedule_(schedule) {
  if (use_rotation && schedule.Rotation().size() > 1) {
    rotation_.assign(schedule.Rotation().begin(), schedule.Rotation().end());
    rotation_index_.assign(schedule.members(), kNone);
    for (uint32_t i = 0; i < rotation_.size(); ++i) rotation_index_[rotation_[i]] = i;
    local_.assign(schedule.members(), kNone);
  }
  members_.reserve(schedule.members() - (rotation_.empty() ? 0 : rotation_.size() - 1));
  uint32_t lanes = 0;
  for (uint32_t member = 0; member < schedule.members(); ++member) {
    if (RotationIndex(member) != kNone && RotationIndex(member) != 0) continue;
    if (!local_.empty()) local_[member] = static_cast<uint32_t>(members_.size());
    members_left_ += !members_.emplace_back(schedule, member, kOneAtATime).finished();
    first_lane_.push_back(lanes);
    lanes += schedule.Lanes(member);
  }
  unmatched_.resize(2 * size_t{lanes});
}

void Progress::Start(Begin begin) {
  for (MemberProgress& member : members_) member.Start([&](const Due& due) { Match(member.member(), due, begin); });
}

// Begins the transfer if the other end is due too.
void Progress::Match(uint32_t member, const Due& due, Begin begin) {
  const Step& mine = due.step;
  // Inside a rotation, what the first member does with the one i places on is what the one i places back does with the first.
  const bool inside = RotationIndex(member) == 0 && RotationIndex(mine.peer) != kNone;
  const uint32_t other_member = inside ? member : mine.peer;
  // A step of a member outside the rotation with another than the first is done when that with the first is done.
  if (!Followed(other_member)) return;
  const uint32_t queue = QueueOf(member, due.lane, due.receives());
  const uint32_t other_queue = QueueOf(other_member, mine.peer_lane, !due.receives());
  unmatched_[queue] = true;
  if (!unmatched_[other_queue]) return;
  const Step& theirs = members_[Local(other_member)].UnderWay(mine.peer_lane, !due.receives()).front().step;
  if (inside) {
    if ((rotation_index_[mine.peer] + rotation_index_[theirs.peer]) % rotation_.size() != 0) return;
  } else if (theirs.peer != member || theirs.peer_lane != due.lane) {
    return;
  }
  unmatched_[queue] = unmatched_[other_queue] = false;
  if (due.receives())
    begin({other_member, mine.peer_lane, member, due.lane, theirs, mine});
  else
    begin({member, due.lane, other_member, mine.peer_lane, mine, theirs});
}

void Progress::Done(uint32_t member, uint32_t lane, bool receives, Begin begin) {
  MemberProgress& progress = members_[Local(member)];
  const auto match = [&](const Due& due) { Match(member, due, begin); };
  const uint32_t index = progress.UnderWay(lane, receives).front().index;
  receives ? progress.ReceiveDone(lane, index, match) : progress.SendDone(lane, index, match);
  members_left_ -= progress.finished();
}

// A member outside the rotation did with all members what it did with the first.
void Progress::ImagesDone(const Transfer& transfer, uint32_t send_index, uint32_t receive_index, Begin begin) {
  const bool from_inside = RotationIndex(transfer.from) == 0;
  const bool to_inside = RotationIndex(transfer.to) == 0;
  if (from_inside == to_inside) return;
  for (uint32_t i = 1; i < rotation_.size(); ++i) {
    if (from_inside)
      Done(transfer.to, schedule_.Send(rotation_[i], transfer.from_lane, send_index).peer_lane, true, begin);
    else
      Done(transfer.from, schedule_.Receive(rotation_[i], transfer.to_lane, receive_index).peer_lane, false, begin);
  }
}

void Progress::Complete(const Transfer& transfer, Begin begin) {
  const uint32_t send_index = members_[Local(transfer.from)].UnderWay(transfer.from_lane, false).front().index;
  const uint32_t receive_index = members_[Local(transfer.to)].UnderWay(transfer.to_lane, true).front().index;
  Done(transfer.from, transfer.from_lane, false, begin);
  Done(transfer.to, transfer.to_lane, true, begin);
  if (!rotation_.empty()) ImagesDone(transfer, send_index, receive_index, begin);
}

std::string Progress::Stuck() const {
  for (const MemberProgress& member : members_)
    if (std::string waiting = member.Waiting(); !waiting.empty()) return waiting + " for ever";
  return "";
}

}  // namespace r2cc::plan
