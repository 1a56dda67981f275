// An AllReduce that no generator has made: of each block, members in any order hand what they have to another one, until one has all; then
// whoever has the sum gives it to one that lacks it. Over any lanes, the blocks of any size and mixed up.
#ifndef R2CC_TESTS_COLLNET_RANDOM_SCHEDULE_H_
#define R2CC_TESTS_COLLNET_RANDOM_SCHEDULE_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "plan/schedule/schedule.h"

namespace r2cc::collnet_test {

class RandomSchedule final : public plan::Schedule {
 public:
  RandomSchedule(uint32_t members, uint64_t bytes, uint64_t seed);

  std::string name() const override { return "random"; }
  uint32_t members() const override { return static_cast<uint32_t>(members_.size()); }
  uint32_t blocks() const override { return static_cast<uint32_t>(cuts_.size() - 1); }
  plan::Range RangeOf(uint32_t first, uint32_t count) const override { return {cuts_[first], cuts_[first + count]}; }
  uint32_t Lanes(uint32_t member) const override { return static_cast<uint32_t>(members_[member].size()); }
  uint32_t Sends(uint32_t m, uint32_t lane) const override { return static_cast<uint32_t>(members_[m][lane].sends.size()); }
  uint32_t Receives(uint32_t m, uint32_t lane) const override { return static_cast<uint32_t>(members_[m][lane].receives.size()); }
  plan::Step Send(uint32_t member, uint32_t lane, uint32_t index) const override { return members_[member][lane].sends[index]; }
  plan::Step Receive(uint32_t member, uint32_t lane, uint32_t index) const override { return members_[member][lane].receives[index]; }
  double Weight(uint32_t member, uint32_t lane) const override { return members_[member][lane].weight; }

 private:
  struct Lane {
    std::vector<plan::Step> sends, receives;
    double weight = 1;
  };
  // A block at a member.
  struct Cell {
    bool whole = false;  // it has the sum
    bool has = true;     // something that nobody else has
    uint32_t receives = 0, sends = 0;
    uint32_t bar = 0;  // receives, when somebody looked at it last
  };
  void Transfer(uint32_t block, uint32_t from, uint32_t to, bool adds);
  // False: nothing is left to do for the block.
  bool Advance(uint32_t block);
  uint32_t Below(uint64_t n) { return static_cast<uint32_t>(random_() % n); }
  Cell& At(uint32_t block, uint32_t member) { return cells_[block * members_.size() + member]; }

  std::mt19937_64 random_;
  std::vector<std::vector<Lane>> members_;
  std::vector<uint64_t> cuts_;
  std::vector<Cell> cells_;
};

}  // namespace r2cc::collnet_test

#endif  // R2CC_TESTS_COLLNET_RANDOM_SCHEDULE_H_
