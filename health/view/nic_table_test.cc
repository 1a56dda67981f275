#include "health/view/nic_table.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "health/view/nic_machine.h"

namespace r2cc::health {
namespace {

NicState State(int i) { return static_cast<NicState>(i); }
NicEvent Event(int i) { return static_cast<NicEvent>(i); }

TEST(NicTable, EveryEventAndStateHasAName) {
  for (int i = 0; i < kNicEvents; ++i) EXPECT_STRNE(NicEventName(Event(i)), "unknown") << i;
  for (int i = 0; i < kNicStates; ++i) EXPECT_STRNE(NicStateName(State(i)), "unknown") << i;
}

TEST(NicTable, DownIsFastFromEveryState) {
  for (int i = 0; i < kNicStates; ++i) {
    const NicStep expected = State(i) == NicState::kFailed ? NicStep::kStay : NicStep::kFailed;
    EXPECT_EQ(StepFor(State(i), NicEvent::kLinkDown), expected) << NicStateName(State(i));
    EXPECT_EQ(StepFor(State(i), NicEvent::kDrillFail), expected) << NicStateName(State(i));
    // Nothing is silent that has no link.
    if (State(i) == NicState::kUncabled) continue;
    EXPECT_EQ(StepFor(State(i), NicEvent::kSilent), expected) << NicStateName(State(i));
  }
}

TEST(NicTable, NobodyButKernelProbesAndOperatorFailsANic) {
  for (int event = 0; event < kNicEvents; ++event) {
    if (Event(event) == NicEvent::kLinkDown || Event(event) == NicEvent::kDrillFail || Event(event) == NicEvent::kSilent ||
        Event(event) == NicEvent::kNoCable)
      continue;
    for (int state = 0; state < kNicStates; ++state)
      EXPECT_NE(StepFor(State(state), Event(event)), NicStep::kFailed)
          << NicEventName(Event(event)) << " in " << NicStateName(State(state));
  }
}

TEST(NicTable, OutOfRangeEndsTheProcess) {
  EXPECT_DEATH(StepFor(static_cast<NicState>(kNicStates), NicEvent::kLinkUp), "invariant broken");
  EXPECT_DEATH(StepFor(NicState::kHealthy, static_cast<NicEvent>(kNicEvents)), "invariant broken");
}

// Goal: no empty cell is ever met, every other cell is needed, and the table agrees with a second, independent formulation of the
// states. Method: all sequences of kDepth inputs, an input being an event or a stretch of time, run through real machines.
class Explorer {
 public:
  static constexpr int kDepth = 5;

  void Run() { Explore(NicMachine(policy_, now_), kDepth); }
  const std::set<std::pair<NicState, NicEvent>>& reached() const { return reached_; }
  int64_t steps() const { return steps_; }

 private:
  // The state that follows from what is remembered, written down once more without looking at the table: the worst word wins.
  static NicState Oracle(const NicMachine& machine) {
    if (machine.drill_failed() || machine.silent()) return NicState::kFailed;
    if (machine.link_known() && !machine.link_up()) return machine.uncabled() ? NicState::kUncabled : NicState::kFailed;
    if (machine.drained()) return NicState::kDrained;
    if (machine.proving() || !machine.link_known()) return NicState::kProving;
    if (machine.suspected()) return NicState::kSuspect;
    return machine.impaired() ? NicState::kDegraded : NicState::kHealthy;
  }

  void Explore(const NicMachine& machine, int depth) {
    if (depth == 0 || ::testing::Test::HasFailure()) return;
    for (int i = 0; i < kNicEvents; ++i) {
      if (Event(i) == NicEvent::kProved || Event(i) == NicEvent::kForgotten) continue;
      NicMachine next = machine;
      const NicTransition transition = next.Handle(Event(i), now_, "cause");
      if (IsNews(machine, next)) reached_.insert({machine.state(), Event(i)});
      Check(machine, next, transition);
      Explore(next, depth - 1);
    }
    if (machine.next_tick() == NicMachine::kNever) return;
    // Time: to just before the next timer, where nothing may happen, and then to it.
    const Nanos before = now_;
    now_ = machine.next_tick() - 1;
    NicMachine early = machine;
    const NicTransition nothing = early.Tick(now_);
    EXPECT_FALSE(nothing.changed());
    EXPECT_EQ(early.next_tick(), machine.next_tick());
    now_ = machine.next_tick();
    NicMachine next = machine;
    const NicTransition transition = next.Tick(now_);
    reached_.insert({machine.state(), machine.suspected() && !next.suspected() ? NicEvent::kForgotten : NicEvent::kProved});
    Check(machine, next, transition);
    Explore(next, depth - 1);
    now_ = before;
  }

  static bool IsNews(const NicMachine& a, const NicMachine& b) {
    return a.link_known() != b.link_known() || a.link_up() != b.link_up() || a.drained() != b.drained() ||
           a.drill_failed() != b.drill_failed() || a.impaired() != b.impaired() || a.suspected() != b.suspected() ||
           a.silent() != b.silent() || a.uncabled() != b.uncabled();
  }

  void Check(const NicMachine& before, const NicMachine& after, const NicTransition& transition) {
    ++steps_;
    EXPECT_EQ(transition.from, before.state());
    EXPECT_EQ(transition.to, after.state());
    EXPECT_EQ(transition.reason, after.reason());
    EXPECT_FALSE(after.reason().empty());
    EXPECT_EQ(after.since(), transition.changed() ? now_ : before.since());
    EXPECT_EQ(after.state(), Oracle(after));
    EXPECT_FALSE(after.state() == NicState::kFailed && after.suspected());
    EXPECT_FALSE(after.uncabled() && (after.link_up() || after.suspected() || after.flaps_total() > 0));
    EXPECT_FALSE(after.link_known() && !after.link_up() && CarriesTraffic(after.state()));
    EXPECT_FALSE(after.silent() && (!after.link_up() || after.proving()));
  }

  const NicPolicy policy_;
  Nanos now_ = kNanosPerSecond;
  std::set<std::pair<NicState, NicEvent>> reached_;
  int64_t steps_ = 0;
};

TEST(NicTable, IsExactlyWhatCanHappen) {
  Explorer explorer;
  explorer.Run();
  EXPECT_GT(explorer.steps(), 100'000);
  for (int state = 0; state < kNicStates; ++state)
    for (int event = 0; event < kNicEvents; ++event) {
      const bool possible = StepFor(State(state), Event(event)) != NicStep::kImpossible;
      EXPECT_EQ(explorer.reached().contains({State(state), Event(event)}), possible)
          << NicEventName(Event(event)) << " in " << NicStateName(State(state));
    }
}

}  // namespace
}  // namespace r2cc::health
