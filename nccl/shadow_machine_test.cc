#include "nccl/shadow_machine.h"

#include <gtest/gtest.h>

namespace r2cc::nccl {
namespace {

using Action = ShadowAction;
using State = ShadowState;

Vector With(std::vector<uint32_t> kept, bool all_have_child = false, uint32_t free_mib = 4096) {
  Vector vector;
  for (uint32_t node = 0; node < kept.size(); ++node) vector.node_of.push_back(node);
  vector.nodes = {std::move(kept), 4, 4};
  vector.free_mib = free_mib;
  vector.all_have_child = all_have_child;
  return vector;
}
Vector Healthy() { return With({1000, 1000, 1000, 1000}); }
Vector Half(uint32_t node = 1, bool all_have_child = false) {
  std::vector<uint32_t> kept(4, 1000);
  kept[node] = 500;
  return With(kept, all_have_child);
}
Vector Unfit() {
  Vector vector = Half();
  vector.problem = "none";
  return vector;
}

void Step(ShadowMachine* machine, const Vector& vector, State state, Action action) {
  EXPECT_EQ(machine->Step(vector), action);
  EXPECT_EQ(machine->state(), state);
}

ShadowMachine Seated() {
  ShadowMachine machine;
  machine.Step(Half());
  machine.Step(Half());
  machine.Step(Half(1, true));
  return machine;
}

TEST(ShadowMachine, ThereAndBack) {
  ShadowMachine machine;
  Step(&machine, Healthy(), State::kParent, Action::kNothing);
  Step(&machine, Half(), State::kGain, Action::kNothing);
  EXPECT_FALSE(machine.uses_child());
  Step(&machine, Half(), State::kMaking, Action::kMake);
  EXPECT_EQ(machine.child(), 1U);
  EXPECT_FALSE(machine.uses_child());
  Step(&machine, Half(1, true), State::kSeated, Action::kUse);
  EXPECT_TRUE(machine.uses_child());
  EXPECT_EQ(machine.wanted().order, (std::vector<uint32_t>{1, 0, 2, 3}));
  EXPECT_GT(machine.bytes_min(), 12U << 20);
  EXPECT_LT(machine.bytes_min(), 16U << 20);
  Step(&machine, Half(1, true), State::kSeated, Action::kNothing);
  Step(&machine, Healthy(), State::kLoss, Action::kNothing);
  EXPECT_TRUE(machine.uses_child());
  Step(&machine, Healthy(), State::kParent, Action::kLeave);
  EXPECT_FALSE(machine.uses_child());
  // The next time the child has another number, so that nobody takes an old word for it.
  Step(&machine, Half(), State::kGain, Action::kNothing);
  Step(&machine, Half(), State::kMaking, Action::kMake);
  EXPECT_EQ(machine.child(), 2U);
}

TEST(ShadowMachine, ASingleObservationChangesNothing) {
  ShadowMachine machine;
  machine.Step(Half());
  Step(&machine, Healthy(), State::kParent, Action::kNothing);
  machine.Step(Half(1));
  // Another node is none that was seen before.
  Step(&machine, Half(2), State::kGain, Action::kNothing);
  Step(&machine, Half(2), State::kMaking, Action::kMake);
  ShadowMachine seated = Seated();
  seated.Step(Healthy());
  Step(&seated, Half(1, true), State::kSeated, Action::kNothing);
}

TEST(ShadowMachine, AChildThatNotAllHaveIsDropped) {
  for (const Vector& next : {Half(), Healthy(), Half(2), With({1000, 1000, 500, 1000}, false, 1)}) {
    ShadowMachine machine;
    machine.Step(Half());
    machine.Step(Half());
    EXPECT_EQ(machine.Step(next), Action::kDrop);
    EXPECT_FALSE(machine.uses_child());
  }
  ShadowMachine machine;
  machine.Step(Half());
  machine.Step(Half());
  Step(&machine, Half(), State::kRefused, Action::kDrop);
  for (uint32_t vector = 1; vector < kVectorsRefused; ++vector) Step(&machine, Half(), State::kRefused, Action::kNothing);
  Step(&machine, Half(), State::kGain, Action::kNothing);
  Step(&machine, Half(), State::kMaking, Action::kMake);
}

TEST(ShadowMachine, AnotherOrderGoesByTheParentFirst) {
  ShadowMachine machine = Seated();
  Step(&machine, Half(2, true), State::kLoss, Action::kNothing);
  EXPECT_EQ(machine.wanted().order, (std::vector<uint32_t>{1, 0, 2, 3}));  // which is in use
  Step(&machine, Half(2, true), State::kGain, Action::kLeave);
  Step(&machine, Half(2), State::kGain, Action::kNothing);
  Step(&machine, Half(2), State::kMaking, Action::kMake);
  Step(&machine, Half(2, true), State::kSeated, Action::kUse);
  EXPECT_EQ(machine.wanted().order, (std::vector<uint32_t>{2, 0, 1, 3}));
}

TEST(ShadowMachine, WithoutMemoryNothingIsMade) {
  ShadowMachine machine;
  for (int i = 0; i < 5; ++i) Step(&machine, With({500, 1000, 1000, 1000}, false, kChildMib - 1), State::kParent, Action::kNothing);
  Step(&machine, With({500, 1000, 1000, 1000}, false, kChildMib), State::kGain, Action::kNothing);
}

TEST(ShadowMachine, AnUnfitRankIsNeverAskedAgain) {
  ShadowMachine machine = Seated();
  Step(&machine, Unfit(), State::kOff, Action::kDrop);
  EXPECT_TRUE(machine.is_off());
  Step(&machine, Half(), State::kOff, Action::kNothing);
}

// For any sequence: a machine that leaves the child for another state reports it, and a seated one has been ready.
TEST(ShadowTable, IsSound) {
  for (int state = 0; state <= static_cast<int>(State::kOff); ++state)
    for (int event = 0; event <= static_cast<int>(ShadowEvent::kUnfit); ++event) {
      const auto from = static_cast<State>(state);
      const ShadowCell cell = ShadowTable(from, static_cast<ShadowEvent>(event));
      const bool used = from == State::kSeated || from == State::kLoss;
      const bool uses = cell.next == State::kSeated || cell.next == State::kLoss;
      EXPECT_EQ(cell.action == Action::kUse, !used && uses) << state << " " << event;
      EXPECT_EQ(cell.action == Action::kLeave || (cell.action == Action::kDrop && used), used && !uses) << state << " " << event;
      EXPECT_EQ(cell.action == Action::kMake, from != State::kMaking && cell.next == State::kMaking) << state << " " << event;
      if (!used && uses) {
        EXPECT_EQ(static_cast<ShadowEvent>(event), ShadowEvent::kReady);
      }
      if (from == State::kMaking && !uses) {
        EXPECT_EQ(cell.action, Action::kDrop);
      }
    }
}

}  // namespace
}  // namespace r2cc::nccl
