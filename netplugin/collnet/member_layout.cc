#include "netplugin/collnet/member_layout.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/core/check.h"
#include "netplugin/collnet/mutant.h"

namespace r2cc::collnet {

using plan::Range;
using plan::Step;
using plan::StepKind;

MemberLayout::MemberLayout(std::shared_ptr<const plan::Schedule> schedule, uint32_t member)
    : schedule_(std::move(schedule)), member_(member), staging_(schedule_->Lanes(member)), groups_(schedule_->blocks()) {
  R2CC_CHECK(schedule_->collective() == plan::Collective::kAllReduce && schedule_->members() >= 2);
  for (uint32_t lane = 0; lane < schedule_->Lanes(member_); ++lane) {
    for (uint32_t i = 0; i < schedule_->Sends(member_, lane); ++i) {
      const Step step = schedule_->Send(member_, lane, i);
      AddFlow(&sends_, {step.peer, lane, step.peer_lane, schedule_->Weight(member_, lane)});
    }
    for (uint32_t i = 0; i < schedule_->Receives(member_, lane); ++i) {
      const Step step = schedule_->Receive(member_, lane, i);
      AddFlow(&receives_, {step.peer, step.peer_lane, lane, schedule_->Weight(step.peer, step.peer_lane)});
      staging_[lane].push_back(staging_bytes_);
      if (step.kind == StepKind::kReceiveReduce) staging_bytes_ += schedule_->RangeOf(step.block, step.blocks).bytes();
    }
  }
  FindGroups();
}

void MemberLayout::AddFlow(std::vector<Flow>* flows, Flow flow) {
  if (std::find(flows->begin(), flows->end(), flow) == flows->end()) flows->push_back(flow);
}

void MemberLayout::FindGroups() {
  // Of each block, after how many receives somebody looks at it or overwrites it.
  std::vector<std::set<uint32_t>> bars(groups_.size());
  std::vector<uint32_t> receives(groups_.size());
  for (uint32_t lane = 0; lane < schedule_->Lanes(member_); ++lane) {
    for (uint32_t i = 0; i < schedule_->Sends(member_, lane); ++i) {
      const Step step = schedule_->Send(member_, lane, i);
      for (uint32_t b = 0; b < step.blocks; ++b) bars[step.block + b].insert(step.after_receives);
    }
    for (uint32_t i = 0; i < schedule_->Receives(member_, lane); ++i) {
      const Step step = schedule_->Receive(member_, lane, i);
      for (uint32_t b = 0; b < step.blocks; ++b) {
        ++receives[step.block + b];
        if (step.kind == StepKind::kReceive) bars[step.block + b].insert({step.after_receives, step.after_receives + 1});
      }
    }
  }
  for (uint32_t block = 0; block < groups_.size(); ++block) {
    bars[block].insert({0, receives[block]});
    for (auto bar = bars[block].begin(); std::next(bar) != bars[block].end(); ++bar)
      groups_[block].push_back({*bar, *std::next(bar) - *bar, {{member_, 0, true}}});
  }
  for (uint32_t lane = 0; lane < schedule_->Lanes(member_); ++lane) {
    for (uint32_t i = 0; i < schedule_->Receives(member_, lane); ++i) {
      const Step step = schedule_->Receive(member_, lane, i);
      if (step.kind != StepKind::kReceiveReduce) continue;
      const uint64_t begin = schedule_->RangeOf(step.block, 1).begin;
      for (uint32_t block = step.block; block < step.block + step.blocks; ++block) {
        // One that adds may wait for any of the receives before it; those that it must come after are in earlier groups.
        auto group = std::find_if(groups_[block].rbegin(), groups_[block].rend(),
                                  [&](const Group& each) { return each.first_receive <= step.after_receives; });
        group->contributions.push_back({step.peer, staging_[lane][i] + schedule_->RangeOf(block, 1).begin - begin, false});
        if (IsActive(CollNetMutant::kCountedTwice) && block == 0) group->contributions.push_back(group->contributions.back());
      }
    }
  }
  for (auto& groups : groups_) {
    // One that overwrites is no group.
    std::erase_if(groups, [](const Group& group) { return group.contributions.size() == 1; });
    for (Group& group : groups)
      std::stable_sort(group.contributions.begin(), group.contributions.end(),
                       [](const Contribution& a, const Contribution& b) { return a.member < b.member; });
  }
}

}  // namespace r2cc::collnet
