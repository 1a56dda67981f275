// Builds the parts of schedules.
#ifndef R2CC_PLAN_SCHEDULE_PARTS_H_
#define R2CC_PLAN_SCHEDULE_PARTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plan/schedule/schedule.h"

namespace r2cc::plan {

// (a + b) mod n for a < n and any b, also below zero.
inline uint32_t Around(uint32_t a, int64_t b, uint32_t n) {
  const int64_t sum = (static_cast<int64_t>(a) + b) % n;
  return static_cast<uint32_t>(sum < 0 ? sum + n : sum);
}

// One direction of a ring of `n`: at step t, position q sends a chunk to q+1 and receives one from q-1.
struct RingWalk {
  uint32_t n;

  uint32_t ReduceSend(uint32_t q, uint32_t t) const { return Around(q, -int64_t{t} - 1, n); }
  uint32_t ReduceReceive(uint32_t q, uint32_t t) const { return Around(q, -int64_t{t} - 2, n); }  // the last one is q's own
  uint32_t GatherSend(uint32_t q, uint32_t t) const { return Around(q, -int64_t{t}, n); }
  uint32_t GatherReceive(uint32_t q, uint32_t t) const { return Around(q, -int64_t{t} - 1, n); }

  // How often position q has received or sent a chunk when both halves are over.
  uint32_t AllReceives(uint32_t q, uint32_t chunk) const { return (chunk != Around(q, -1, n)) + (chunk != q); }
  uint32_t AllSends(uint32_t q, uint32_t chunk) const { return (chunk != q) + (chunk != Around(q, 1, n)); }
};

// The counts of the two halves' steps, for a chunk that starts raw at the position where its chain begins.
Step RingSend(const RingWalk& ring, uint32_t q, uint32_t t, Collective collective);
Step RingReceive(const RingWalk& ring, uint32_t q, uint32_t t, Collective collective);
inline uint32_t RingSteps(const RingWalk& ring, Collective collective) {
  return (collective == Collective::kAllReduce ? 2 : 1) * (ring.n - 1);
}

// Schedules side by side, each on its own part of the vector, its own members and its own lanes.
class Parallel final : public Schedule {
 public:
  struct Part {
    std::unique_ptr<Schedule> schedule;
    std::vector<uint32_t> members;  // the schedule's member i is members[i]
    double weight = 1;              // of its lanes, on top of their own
  };

  // The parts' vectors in order make up the whole; each part's length but the last one's is a multiple of kElementBytes.
  Parallel(std::string name, uint32_t members, std::vector<Part> parts);

  std::string name() const override { return name_; }
  uint32_t members() const override { return members_; }
  uint32_t blocks() const override { return blocks_; }
  Range RangeOf(uint32_t first, uint32_t count) const override;
  uint32_t Lanes(uint32_t member) const override { return seats_[member].back().lane; }
  uint32_t Sends(uint32_t member, uint32_t lane) const override;
  uint32_t Receives(uint32_t member, uint32_t lane) const override;
  Step Send(uint32_t member, uint32_t lane, uint32_t index) const override;
  Step Receive(uint32_t member, uint32_t lane, uint32_t index) const override;
  double Weight(uint32_t member, uint32_t lane) const override;
  std::span<const uint32_t> Rotation() const override { return rotation_; }

 private:
  // The place of a member in a part: its number there and its first lane. One more at the end, for the number of lanes.
  struct Seat {
    uint32_t part = 0;
    uint32_t local = 0;
    uint32_t lane = 0;
  };
  const Seat& SeatOf(uint32_t member, uint32_t lane) const;
  uint32_t PartOf(uint32_t block) const;
  Step Global(Step step, uint32_t part) const;

  std::string name_;
  uint32_t members_;
  std::vector<Part> parts_;
  std::vector<uint32_t> first_block_;
  std::vector<uint64_t> first_byte_;
  uint32_t blocks_ = 0;
  std::vector<uint32_t> rotation_;                 // of the only part
  std::vector<std::vector<Seat>> seats_;           // by member
  std::vector<std::vector<uint32_t>> first_lane_;  // by part and local member
};

// How many bytes the share `part` of the vector has, cut between elements.
uint64_t PartBytes(uint64_t bytes, double part);

// A ring AllReduce of members 0..core-1, `per_server` of which in a row run on one server; then, chunk by chunk, the contributions of the
// chains of further members are added, and the sum goes down two trees through the core and back to the chains. `chain_lengths` has the
// number of members of each chain; they are numbered on from `core`, and the last of a chain sends the sum of the chain. core >= 2, a
// multiple of per_server.
std::unique_ptr<Schedule> MakePartial(uint32_t core, uint32_t per_server, std::vector<uint32_t> chain_lengths, uint64_t bytes,
                                      uint32_t chunks);

// Only OptCC's four stages: members 0..healthy-1 and the degraded one, number `healthy`. healthy >= 2.
std::unique_ptr<Schedule> MakeStaged(uint32_t healthy, uint64_t bytes, uint32_t segments);

}  // namespace r2cc::plan

#endif  // R2CC_PLAN_SCHEDULE_PARTS_H_
