// Schedules for tests: written down by hand, or another one with a fault.
#ifndef R2CC_PLAN_SCHEDULE_TEST_SCHEDULES_H_
#define R2CC_PLAN_SCHEDULE_TEST_SCHEDULES_H_

#include <string>
#include <vector>

#include "plan/schedule/schedule.h"

namespace r2cc::plan {

// Each member has one lane more than the largest that is used anywhere.
class ListedSchedule final : public Schedule {
 public:
  ListedSchedule(uint32_t members, uint32_t blocks, Collective collective = Collective::kAllReduce)
      : members_(members), blocks_(blocks), collective_(collective), lanes_(members) {}

  // Both ends of a transfer of one block.
  void Add(uint32_t from, uint32_t to, uint32_t lane, Step send, Step receive) {
    send.kind = StepKind::kSend;
    send.peer = to;
    receive.peer = from;
    send.peer_lane = receive.peer_lane = lane;
    receive.block = send.block;
    for (auto& lanes : lanes_)
      if (lanes.size() <= lane) lanes.resize(lane + 1);
    lanes_[from][lane].sends.push_back(send);
    lanes_[to][lane].receives.push_back(receive);
  }

  std::string name() const override { return "listed"; }
  Collective collective() const override { return collective_; }
  uint32_t members() const override { return members_; }
  uint32_t blocks() const override { return blocks_; }
  uint32_t OwnerOf(uint32_t block) const override { return block % members_; }
  Range RangeOf(uint32_t first, uint32_t count) const override { return {first * 64, (first + count) * 64}; }
  uint32_t Lanes(uint32_t member) const override { return static_cast<uint32_t>(lanes_[member].size()); }
  uint32_t Sends(uint32_t m, uint32_t lane) const override { return static_cast<uint32_t>(lanes_[m][lane].sends.size()); }
  uint32_t Receives(uint32_t m, uint32_t lane) const override { return static_cast<uint32_t>(lanes_[m][lane].receives.size()); }
  Step Send(uint32_t member, uint32_t lane, uint32_t index) const override { return lanes_[member][lane].sends[index]; }
  Step Receive(uint32_t member, uint32_t lane, uint32_t index) const override { return lanes_[member][lane].receives[index]; }

 private:
  struct Lane {
    std::vector<Step> sends, receives;
  };
  uint32_t members_;
  uint32_t blocks_;
  Collective collective_;
  std::vector<std::vector<Lane>> lanes_;
};

// `base` without its lanes' weights: all get the same of a busy port.
class UnpacedSchedule : public Schedule {
 public:
  explicit UnpacedSchedule(const Schedule& base) : base_(base) {}

  std::string name() const override { return base_.name(); }
  Collective collective() const override { return base_.collective(); }
  uint32_t members() const override { return base_.members(); }
  uint32_t blocks() const override { return base_.blocks(); }
  Range RangeOf(uint32_t first, uint32_t count) const override { return base_.RangeOf(first, count); }
  uint32_t OwnerOf(uint32_t block) const override { return base_.OwnerOf(block); }
  uint32_t Lanes(uint32_t member) const override { return base_.Lanes(member); }
  uint32_t Sends(uint32_t member, uint32_t lane) const override { return base_.Sends(member, lane); }
  uint32_t Receives(uint32_t member, uint32_t lane) const override { return base_.Receives(member, lane); }
  Step Send(uint32_t member, uint32_t lane, uint32_t index) const override { return base_.Send(member, lane, index); }
  Step Receive(uint32_t member, uint32_t lane, uint32_t index) const override { return base_.Receive(member, lane, index); }

 protected:
  const Schedule& base_;
};

enum class Fault {
  kMissing,       // the step is not there
  kTwice,         // it is there twice
  kSwapped,       // it and the next one of its queue change places
  kOtherPeer,     // its peer is the next member
  kOtherLane,     // its peer's lane is the next one
  kOtherBlock,    // its block is the next one
  kOtherKind,     // a receive adds instead of overwriting, or the other way
  kEarly,         // it waits for one receive fewer, or one more if for none
  kForgetsSends,  // a receive waits for one send fewer, or one more if for none
};
constexpr int kFaults = 9;

// `base` with one fault at one step.
class FaultySchedule final : public UnpacedSchedule {
 public:
  FaultySchedule(const Schedule& base, Fault fault, uint32_t member, uint32_t lane, bool receives, uint32_t index)
      : UnpacedSchedule(base), fault_(fault), member_(member), lane_(lane), receives_(receives), index_(index) {}

  uint32_t Sends(uint32_t member, uint32_t lane) const override { return Size(base_.Sends(member, lane), member, lane, false); }
  uint32_t Receives(uint32_t member, uint32_t lane) const override { return Size(base_.Receives(member, lane), member, lane, true); }
  Step Send(uint32_t member, uint32_t lane, uint32_t index) const override { return Get(member, lane, false, index); }
  Step Receive(uint32_t member, uint32_t lane, uint32_t index) const override { return Get(member, lane, true, index); }

  // Whether the fault makes the schedule wrong: an addition may wait for others that it need not wait for, and steps with different
  // peers may change places.
  bool Matters() const {
    const Step step = Base(member_, lane_, receives_, index_);
    const uint32_t size = receives_ ? base_.Receives(member_, lane_) : base_.Sends(member_, lane_);
    if (fault_ == Fault::kSwapped) return index_ + 1 < size && step.peer == Base(member_, lane_, receives_, index_ + 1).peer;
    if (fault_ == Fault::kEarly) return step.kind != StepKind::kReceiveReduce;
    if (fault_ == Fault::kOtherKind || fault_ == Fault::kForgetsSends) return receives_;
    return true;
  }

 private:
  bool Here(uint32_t member, uint32_t lane, bool receives) const { return member == member_ && lane == lane_ && receives == receives_; }
  uint32_t Size(uint32_t size, uint32_t member, uint32_t lane, bool receives) const {
    if (!Here(member, lane, receives)) return size;
    return size - (fault_ == Fault::kMissing) + (fault_ == Fault::kTwice);
  }
  Step Base(uint32_t member, uint32_t lane, bool receives, uint32_t index) const {
    return receives ? base_.Receive(member, lane, index) : base_.Send(member, lane, index);
  }
  Step Get(uint32_t member, uint32_t lane, bool receives, uint32_t index) const {
    if (!Here(member, lane, receives)) return Base(member, lane, receives, index);
    if (fault_ == Fault::kMissing && index >= index_) ++index;
    if (fault_ == Fault::kTwice && index > index_) --index;
    if (fault_ == Fault::kSwapped && (index == index_ || index == index_ + 1)) index = 2 * index_ + 1 - index;
    Step step = Base(member, lane, receives, index);
    if (index != index_) return step;
    const auto one_less = [](uint32_t& count) { count = count > 0 ? count - 1 : 1; };
    switch (fault_) {
      case Fault::kOtherPeer: step.peer = (step.peer + 1) % members(); break;
      case Fault::kOtherLane: ++step.peer_lane; break;
      case Fault::kOtherBlock: step.block = (step.block + 1) % blocks(); break;
      case Fault::kOtherKind:
        if (receives) step.kind = step.kind == StepKind::kReceive ? StepKind::kReceiveReduce : StepKind::kReceive;
        break;
      case Fault::kEarly: one_less(step.after_receives); break;
      case Fault::kForgetsSends: one_less(step.after_sends); break;
      default: break;
    }
    return step;
  }

  Fault fault_;
  uint32_t member_;
  uint32_t lane_;
  bool receives_;
  uint32_t index_;
};

}  // namespace r2cc::plan

#endif  // R2CC_PLAN_SCHEDULE_TEST_SCHEDULES_H_
