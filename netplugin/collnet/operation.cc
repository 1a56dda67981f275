#include "netplugin/collnet/operation.h"

#include <algorithm>
#include <utility>

#include "base/core/check.h"
#include "netplugin/collnet/mutant.h"
#include "netplugin/flow/tuning.h"

namespace r2cc::collnet {

using plan::Range;
using plan::StepKind;
using Due = plan::MemberProgress::Due;

namespace {

struct ReceiveStep {
  bool possible = false;
  ReceiveState next = ReceiveState::kUnderWay;
};
constexpr ReceiveStep kImpossible{};

// Rows: states. Columns: kArrived, kCompletes, kAdded. All contributions of a group but the last are received and forgotten: what looks at
// the block waits for the last one, and that one waits for the sum.
constexpr ReceiveStep kReceiveTable[2][3] = {
    // kUnderWay
    {{true, ReceiveState::kDone}, {true, ReceiveState::kAdding}, kImpossible},
    // kAdding
    {kImpossible, kImpossible, {true, ReceiveState::kDone}},
};

bool IsOf(const Due& due, uint32_t peer, uint32_t peer_lane) { return due.step.peer == peer && due.step.peer_lane == peer_lane; }

}  // namespace

Operation::Operation(const OperationOffer& offer, Slot slot, std::shared_ptr<const MemberLayout> layout, std::vector<MemberAction>* actions)
    : offer_(offer),
      slot_(slot),
      layout_(std::move(layout)),
      actions_(actions),
      progress_(layout_->schedule(), layout_->member(), net::tuning::kStepsUnderWay),
      blocks_(layout_->schedule().blocks()) {}

MemberAction Operation::Make(MemberAction::Kind kind, const FlowName& flow) const {
  MemberAction action;
  action.kind = kind;
  action.operation = offer_.operation;
  action.flow = flow;
  return action;
}

void Operation::Begin() {
  MemberAction begin = Make(MemberAction::Kind::kBegin, {});
  begin.bytes = layout_->staging_bytes();
  actions_->push_back(std::move(begin));
  for (const MemberLayout::Flow& flow : layout_->sends()) {
    const FlowName name{flow.peer, slot_, flow.from_lane, flow.to_lane};
    MemberAction weight = Make(MemberAction::Kind::kWeight, name);
    weight.weight = IsActive(CollNetMutant::kWeightIgnored) ? 1 : flow.weight;
    actions_->push_back(std::move(weight));
    MemberAction offer = Make(MemberAction::Kind::kOffer, name);
    offer.message = Encode(offer_);
    actions_->push_back(std::move(offer));
  }
  for (const MemberLayout::Flow& flow : layout_->receives()) {
    const FlowName name{flow.peer, slot_, flow.from_lane, flow.to_lane};
    offers_missing_.insert(name);
    MemberAction expect = Make(MemberAction::Kind::kExpect, name);
    expect.bytes = kOfferBytes;
    actions_->push_back(std::move(expect));
  }
  progress_.Start([this](const Due& due) { BeginStep(due); });
  FinishSent();
}

std::string Operation::OfferReceived(const FlowName& flow, std::span<const std::byte> bytes) {
  R2CC_CHECK(offers_missing_.erase(flow) == 1);
  return Compare(bytes, offer_);
}

// Who has not begun it explains all that waits for others.
std::string Operation::Waiting() const {
  std::set<uint32_t> late;
  for (const FlowName& flow : offers_missing_) late.insert(flow.peer);
  if (late.empty()) return progress_.Waiting();
  std::string members;
  for (const uint32_t member : late) members += (members.empty() ? "" : ", ") + std::to_string(member);
  return (late.size() == 1 ? "member " + members + " has" : "members " + members + " have") + " not called it";
}

void Operation::BeginStep(const Due& due) { due.receives() ? BeginReceive(due) : BeginSend(due); }

// What nothing was received into is still the caller's own vector.
void Operation::BeginSend(const Due& due) {
  const Range range = layout_->schedule().RangeOf(due.step.block, due.step.blocks);
  MemberAction send = Make(MemberAction::Kind::kSend, {due.step.peer, slot_, due.lane, due.step.peer_lane});
  send.place = {due.step.after_receives == 0 ? Area::kContribution : Area::kResult, range.begin};
  send.bytes = range.bytes();
  actions_->push_back(std::move(send));
  if (IsActive(CollNetMutant::kDoneWhenSent)) sent_.emplace_back(due.lane, due.index);
}

void Operation::FinishSent() {
  for (; !sent_.empty();) {
    const auto [lane, index] = sent_.back();
    sent_.pop_back();
    progress_.SendDone(lane, index, [this](const Due& due) { BeginStep(due); });
  }
}

void Operation::BeginReceive(const Due& due) {
  const Range range = layout_->schedule().RangeOf(due.step.block, due.step.blocks);
  MemberAction receive = Make(MemberAction::Kind::kReceive, {due.step.peer, slot_, due.step.peer_lane, due.lane});
  const bool adds = due.step.kind == StepKind::kReceiveReduce;
  receive.place = adds ? AreaPlace{Area::kStaging, layout_->StagingOf(due.lane, due.index)} : AreaPlace{Area::kResult, range.begin};
  receive.bytes = range.bytes();
  actions_->push_back(std::move(receive));
  receives_[{due.lane, due.index}].peer = due.step.peer;
}

void Operation::SendDone(const FlowName& flow) {
  if (IsActive(CollNetMutant::kDoneWhenSent)) return;
  const auto under_way = progress_.UnderWay(flow.from_lane, false);
  const auto sent = std::find_if(under_way.begin(), under_way.end(), [&](const Due& due) { return IsOf(due, flow.peer, flow.to_lane); });
  R2CC_CHECK(sent != under_way.end());
  progress_.SendDone(flow.from_lane, sent->index, [this](const Due& due) { BeginStep(due); });
}

void Operation::ReceiveDone(const FlowName& flow) {
  R2CC_CHECK(offers_missing_.count(flow) == 0);
  const auto under_way = progress_.UnderWay(flow.to_lane, true);
  const auto arrived = std::find_if(under_way.begin(), under_way.end(), [&](const Due& due) {
    return IsOf(due, flow.peer, flow.from_lane) && receives_.at({due.lane, due.index}).state == ReceiveState::kUnderWay;
  });
  R2CC_CHECK(arrived != under_way.end());
  const ReceiveName name{arrived->lane, arrived->index};
  const plan::Step step = arrived->step;
  std::vector<uint32_t> complete;
  if (step.kind == StepKind::kReceiveReduce)
    for (uint32_t block = step.block; block < step.block + step.blocks; ++block)
      if (CompletesGroup(name, block)) complete.push_back(block);
  receives_[name].sums = static_cast<uint32_t>(complete.size());
  for (const uint32_t block : complete) Reduce(block);
  Step(name, complete.empty() ? ReceiveEvent::kArrived : ReceiveEvent::kCompletes);
}

void Operation::Step(const ReceiveName& name, ReceiveEvent event) {
  Receive& receive = receives_.at(name);
  const ReceiveStep step = kReceiveTable[static_cast<int>(receive.state)][static_cast<int>(event)];
  R2CC_CHECK(step.possible);
  receive.state = step.next;
  const bool early = IsActive(CollNetMutant::kForwardedEarly) && event == ReceiveEvent::kCompletes;
  if (step.next == ReceiveState::kDone || early) {
    receives_.erase(name);
    progress_.ReceiveDone(name.lane, name.index, [this](const Due& due) { BeginStep(due); });
  }
  FinishSent();
}

bool Operation::CompletesGroup(const ReceiveName& receive, uint32_t number) {
  Block& block = blocks_[number];
  if (++block.arrived < layout_->GroupsOf(number)[block.groups_done].receives) return false;
  block.completed_by = receive;
  return true;
}

void Operation::Reduce(uint32_t number) {
  const Block& block = blocks_[number];
  const MemberLayout::Group& group = layout_->GroupsOf(number)[block.groups_done];
  const Range range = layout_->schedule().RangeOf(number, 1);
  MemberAction reduce = Make(MemberAction::Kind::kReduce, {});
  reduce.block = number;
  reduce.bytes = range.bytes();
  reduce.place = {Area::kResult, range.begin};
  const uint32_t last_to_come = receives_.at(block.completed_by).peer;
  for (const MemberLayout::Contribution& each : group.contributions) {
    if (each.own)
      reduce.sources.push_back({group.first_receive == 0 ? Area::kContribution : Area::kResult, range.begin});
    else
      reduce.sources.push_back({Area::kStaging, each.staging});
    if (IsActive(CollNetMutant::kArrivalOrder) && each.member == last_to_come) std::swap(reduce.sources.front(), reduce.sources.back());
  }
  actions_->push_back(std::move(reduce));
}

void Operation::ReduceDone(uint32_t number) {
  R2CC_CHECK(number < blocks_.size());
  Block& block = blocks_[number];
  R2CC_CHECK(block.arrived > 0 && block.arrived == layout_->GroupsOf(number)[block.groups_done].receives);
  block.arrived = 0;
  ++block.groups_done;
  if (IsActive(CollNetMutant::kForwardedEarly)) return;
  if (--receives_.at(block.completed_by).sums == 0) Step(block.completed_by, ReceiveEvent::kAdded);
}

}  // namespace r2cc::collnet
