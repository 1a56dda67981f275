#include "nccl/shadow_machine.h"

#include "nccl/mutant.h"

namespace r2cc::nccl {

using State = ShadowState;
using Event = ShadowEvent;
using Action = ShadowAction;

namespace {

constexpr ShadowCell kTurnsOff = {State::kOff, Action::kDrop};

// kStay, kSame, kOther; kReady, kRetry, kNoChild, kUnfit.
constexpr ShadowCell kTable[7][7] = {
    // kParent
    {{State::kParent, Action::kNothing},
     {State::kGain, Action::kNothing},
     {State::kGain, Action::kNothing},
     {State::kGain, Action::kNothing},
     {State::kGain, Action::kNothing},
     {State::kParent, Action::kNothing},
     kTurnsOff},
    // kGain
    {{State::kParent, Action::kNothing},
     {State::kMaking, Action::kMake},
     {State::kGain, Action::kNothing},
     {State::kMaking, Action::kMake},
     {State::kMaking, Action::kMake},
     {State::kParent, Action::kNothing},
     kTurnsOff},
    // kMaking. A child of which nobody knows that all have it cannot be kept: the next one is made by all or by none.
    {{State::kParent, Action::kDrop},
     {State::kRefused, Action::kDrop},
     {State::kGain, Action::kDrop},
     {State::kSeated, Action::kUse},
     {State::kRefused, Action::kDrop},
     {State::kParent, Action::kDrop},
     kTurnsOff},
    // kSeated
    {{State::kLoss, Action::kNothing},
     {State::kSeated, Action::kNothing},
     {State::kLoss, Action::kNothing},
     {State::kSeated, Action::kNothing},
     {State::kSeated, Action::kNothing},
     {State::kLoss, Action::kNothing},
     kTurnsOff},
    // kLoss
    {{State::kParent, Action::kLeave},
     {State::kSeated, Action::kNothing},
     {State::kGain, Action::kLeave},
     {State::kSeated, Action::kNothing},
     {State::kSeated, Action::kNothing},
     {State::kParent, Action::kLeave},
     kTurnsOff},
    // kRefused
    {{State::kParent, Action::kNothing},
     {State::kRefused, Action::kNothing},
     {State::kGain, Action::kNothing},
     {State::kRefused, Action::kNothing},
     {State::kGain, Action::kNothing},
     {State::kParent, Action::kNothing},
     kTurnsOff},
    // kOff
    {{State::kOff, Action::kNothing},
     {State::kOff, Action::kNothing},
     {State::kOff, Action::kNothing},
     {State::kOff, Action::kNothing},
     {State::kOff, Action::kNothing},
     {State::kOff, Action::kNothing},
     {State::kOff, Action::kNothing}},
};

}  // namespace

ShadowCell ShadowTable(State state, Event event) { return kTable[static_cast<int>(state)][static_cast<int>(event)]; }

Event ShadowMachine::EventOf(const Vector& vector) {
  if (!vector.problem.empty()) return Event::kUnfit;
  // A child that is in use is kept for a smaller gain.
  const bool holds = is_switched() || state_ == State::kMaking;
  plan::WayDecision decision = plan::DecideWay(vector.nodes, vector.collnet, holds ? wanted_ : plan::WayDecision());
  if (decision.way == plan::Way::kUsual) return Event::kStay;
  const bool same = decision.way == wanted_.way && decision.order == wanted_.order;
  // Whether this rank has a child of that kind already is not known to be so on all: memory is asked for each time.
  if (!same && vector.free_mib < kChildMib) return Event::kNoChild;
  if (same || !is_switched()) wanted_ = std::move(decision);
  if (!same) return Event::kOther;
  if (state_ == State::kRefused && ++refused_ >= kVectorsRefused) return Event::kRetry;
  const bool ready = vector.all_have_child || (IsActive(SeatMutant::kUsesChildEarly) && state_ == State::kMaking);
  return ready ? Event::kReady : Event::kSame;
}

Action ShadowMachine::Step(const Vector& vector) {
  ShadowCell cell = ShadowTable(state_, EventOf(vector));
  if (IsActive(SeatMutant::kKeepsUnconfirmedChild) && cell.action == Action::kDrop) cell.action = Action::kNothing;
  state_ = cell.next;
  if (cell.action == Action::kMake) ++child_;
  if (cell.next != State::kRefused) refused_ = 0;
  return cell.action;
}

}  // namespace r2cc::nccl
