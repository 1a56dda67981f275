#include <algorithm>
#include <utility>

#include "base/core/check.h"
#include "plan/schedule/parts.h"

namespace r2cc::plan {

uint64_t PartBytes(uint64_t bytes, double part) {
  return std::min(bytes, static_cast<uint64_t>(static_cast<double>(bytes / kElementBytes) * part + 0.5) * kElementBytes);
}

Parallel::Parallel(std::string name, uint32_t members, std::vector<Part> parts)
    : name_(std::move(name)), members_(members), parts_(std::move(parts)), seats_(members), first_lane_(parts_.size()) {
  std::vector<uint32_t> lanes(members, 0);
  uint64_t bytes = 0;
  for (uint32_t p = 0; p < parts_.size(); ++p) {
    const Part& part = parts_[p];
    R2CC_CHECK(part.members.size() == part.schedule->members() && part.schedule->collective() == Collective::kAllReduce);
    first_block_.push_back(blocks_);
    first_byte_.push_back(bytes);
    blocks_ += part.schedule->blocks();
    bytes += part.schedule->RangeOf(0, part.schedule->blocks()).bytes();
    for (uint32_t local = 0; local < part.members.size(); ++local) {
      const uint32_t member = part.members[local];
      seats_[member].push_back({p, local, lanes[member]});
      first_lane_[p].push_back(lanes[member]);
      lanes[member] += part.schedule->Lanes(local);
    }
  }
  for (uint32_t member = 0; member < members; ++member) seats_[member].push_back({0, 0, lanes[member]});
  if (parts_.size() == 1)
    for (const uint32_t local : parts_[0].schedule->Rotation()) rotation_.push_back(parts_[0].members[local]);
}

const Parallel::Seat& Parallel::SeatOf(uint32_t member, uint32_t lane) const {
  const std::vector<Seat>& seats = seats_[member];
  size_t i = seats.size() - 2;
  while (seats[i].lane > lane) --i;
  return seats[i];
}

uint32_t Parallel::PartOf(uint32_t block) const {
  return static_cast<uint32_t>(std::upper_bound(first_block_.begin(), first_block_.end(), block) - first_block_.begin()) - 1;
}

Range Parallel::RangeOf(uint32_t first, uint32_t count) const {
  const auto cut = [&](uint32_t block, bool end) {
    const uint32_t part = PartOf(block);
    const Range range = parts_[part].schedule->RangeOf(block - first_block_[part], 1);
    return first_byte_[part] + (end ? range.end : range.begin);
  };
  return {cut(first, false), cut(first + count - 1, true)};
}

Step Parallel::Global(Step step, uint32_t part) const {
  step.peer_lane += first_lane_[part][step.peer];
  step.peer = parts_[part].members[step.peer];
  step.block += first_block_[part];
  return step;
}

uint32_t Parallel::Sends(uint32_t member, uint32_t lane) const {
  const Seat& seat = SeatOf(member, lane);
  return parts_[seat.part].schedule->Sends(seat.local, lane - seat.lane);
}
uint32_t Parallel::Receives(uint32_t member, uint32_t lane) const {
  const Seat& seat = SeatOf(member, lane);
  return parts_[seat.part].schedule->Receives(seat.local, lane - seat.lane);
}
Step Parallel::Send(uint32_t member, uint32_t lane, uint32_t index) const {
  const Seat& seat = SeatOf(member, lane);
  return Global(parts_[seat.part].schedule->Send(seat.local, lane - seat.lane, index), seat.part);
}
Step Parallel::Receive(uint32_t member, uint32_t lane, uint32_t index) const {
  const Seat& seat = SeatOf(member, lane);
  return Global(parts_[seat.part].schedule->Receive(seat.local, lane - seat.lane, index), seat.part);
}
double Parallel::Weight(uint32_t member, uint32_t lane) const {
  const Seat& seat = SeatOf(member, lane);
  return parts_[seat.part].weight * parts_[seat.part].schedule->Weight(seat.local, lane - seat.lane);
}

}  // namespace r2cc::plan
