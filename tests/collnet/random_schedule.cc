#include "tests/collnet/random_schedule.h"

#include <algorithm>

namespace r2cc::collnet_test {

using plan::Step;
using plan::StepKind;

RandomSchedule::RandomSchedule(uint32_t members, uint64_t bytes, uint64_t seed) : random_(seed), members_(members) {
  for (auto& lanes : members_) {
    lanes.resize(1 + Below(3));
    for (Lane& lane : lanes) lane.weight = 1 + Below(8) * 0.25;
  }
  cuts_ = {0, bytes};
  for (uint32_t cuts = Below(6); cuts > 0; --cuts) cuts_.push_back(Below(bytes / plan::kElementBytes + 1) * plan::kElementBytes);
  std::sort(cuts_.begin(), cuts_.end());
  cells_.resize(blocks() * members);
  std::vector<uint32_t> left(blocks());
  for (uint32_t i = 0; i < left.size(); ++i) left[i] = i;
  while (!left.empty()) {
    const uint32_t at = Below(left.size());
    if (!Advance(left[at])) left.erase(left.begin() + at);
  }
}

bool RandomSchedule::Advance(uint32_t block) {
  const auto members = static_cast<uint32_t>(members_.size());
  std::vector<uint32_t> holders, whole, others;
  for (uint32_t member = 0; member < members; ++member) {
    if (At(block, member).has) holders.push_back(member);
    (At(block, member).whole ? whole : others).push_back(member);
  }
  if (holders.size() > 1) {
    std::shuffle(holders.begin(), holders.end(), random_);
    Transfer(block, holders[0], holders[1], true);
    At(block, holders[0]).has = false;
    At(block, holders[1]).whole = holders.size() == 2;
    return true;
  }
  if (others.empty()) return false;
  const uint32_t to = others[Below(others.size())];
  Transfer(block, whole[Below(whole.size())], to, false);
  At(block, to).whole = true;
  return true;
}

void RandomSchedule::Transfer(uint32_t block, uint32_t from, uint32_t to, bool adds) {
  Cell& there = At(block, from);
  Cell& here = At(block, to);
  Step send, receive;
  send.block = receive.block = block;
  send.peer = to;
  receive.peer = from;
  receive.peer_lane = Below(members_[from].size());
  send.peer_lane = Below(members_[to].size());
  send.after_receives = there.receives;
  there.bar = there.receives;
  ++there.sends;
  receive.kind = adds ? StepKind::kReceiveReduce : StepKind::kReceive;
  receive.after_sends = here.sends;
  // What adds may come at any time since somebody looked last, or only after the one before.
  receive.after_receives = adds && Below(3) > 0 ? here.bar : here.receives;
  ++here.receives;
  if (!adds) here.bar = here.receives;
  members_[from][receive.peer_lane].sends.push_back(send);
  members_[to][send.peer_lane].receives.push_back(receive);
}

}  // namespace r2cc::collnet_test
