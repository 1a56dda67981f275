// Derives from a schedule what a member needs besides the steps: over which flows it sends and receives, and where contributions land until
// they are added up.
//
// A schedule adds one contribution after another, in the order in which they come. Here they land side by side. Contributions between which
// the block is not read form one *group*. They are added up together when all have come, with the block's own value among them, in the
// members' order. So the result does not depend on which came first, and a small type is rounded once a group.
//
//     receives of a block:   + + +  |  +  |  =  |  + +       + adds, = overwrites; a bar: a send or an overwriting receive waits for
//     exactly groups:                0 0 0     1            2 2        so many receives
#ifndef R2CC_NETPLUGIN_COLLNET_MEMBER_LAYOUT_H_
#define R2CC_NETPLUGIN_COLLNET_MEMBER_LAYOUT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "netplugin/collnet/member_action.h"
#include "plan/schedule/schedule.h"

namespace r2cc::collnet {

// Immutable; any thread may read it.
class MemberLayout {
 public:
  struct Flow {
    uint32_t peer = 0;
    uint32_t from_lane = 0;
    uint32_t to_lane = 0;
    double weight = 1;  // of flows that send

    friend bool operator==(const Flow&, const Flow&) = default;
  };
  struct Contribution {
    uint32_t member = 0;
    uint64_t staging = 0;  // where the bytes that it adds to the block land
    bool own = false;      // the block's present value: in the caller's vector, or in the result
  };
  struct Group {
    uint32_t first_receive = 0;               // of the block
    uint32_t receives = 0;                    // how many it takes; all of them add
    std::vector<Contribution> contributions;  // in the members' order, including the own one
  };

  // `schedule` is an AllReduce of at least two members, and has passed CheckSchedule().
  MemberLayout(std::shared_ptr<const plan::Schedule> schedule, uint32_t member);

  const plan::Schedule& schedule() const { return *schedule_; }
  uint32_t member() const { return member_; }
  // The flows that this member's steps use, once each.
  const std::vector<Flow>& sends() const { return sends_; }
  const std::vector<Flow>& receives() const { return receives_; }
  uint64_t staging_bytes() const { return staging_bytes_; }
  // Where the `index`-th receive of a lane lands, if it adds: its blocks one after the other.
  uint64_t StagingOf(uint32_t lane, uint32_t index) const { return staging_[lane][index]; }
  // In the order in which they come.
  const std::vector<Group>& GroupsOf(uint32_t block) const { return groups_[block]; }

 private:
  void AddFlow(std::vector<Flow>* flows, Flow flow);
  void FindGroups();

  std::shared_ptr<const plan::Schedule> schedule_;
  uint32_t member_;
  std::vector<Flow> sends_;
  std::vector<Flow> receives_;
  uint64_t staging_bytes_ = 0;
  std::vector<std::vector<uint64_t>> staging_;  // by lane and index; unused for receives that overwrite
  std::vector<std::vector<Group>> groups_;      // by block
};

}  // namespace r2cc::collnet

#endif  // R2CC_NETPLUGIN_COLLNET_MEMBER_LAYOUT_H_
