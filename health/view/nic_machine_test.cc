#include "health/view/nic_machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <string>

namespace r2cc::health {
namespace {

constexpr Nanos kMs = kNanosPerMs;
constexpr Nanos kSecond = kNanosPerSecond;

// A machine with a clock at hand.
struct World {
  NicState Do(NicEvent event, const std::string& cause = "") {
    Settle();
    machine.Handle(event, now, cause);
    return machine.state();
  }
  NicState Pass(Nanos by) {
    now += by;
    Settle();
    return machine.state();
  }
  void Settle() {
    while (machine.next_tick() <= now) machine.Tick(now);
  }
  // From link up until trusted again.
  Nanos ProofTime() {
    EXPECT_EQ(machine.state(), NicState::kProving);
    return machine.next_tick() - now;
  }

  NicPolicy policy;
  Nanos now = kSecond;
  NicMachine machine{policy, now};
};

World Healthy() {
  World world;
  EXPECT_EQ(world.Do(NicEvent::kLinkUp), NicState::kHealthy);
  return world;
}

TEST(NicMachine, TheFirstReportNeedsNoProof) {
  World world;
  EXPECT_EQ(world.machine.state(), NicState::kProving);
  EXPECT_EQ(world.machine.reason(), "its link state is not known yet");
  EXPECT_EQ(world.machine.next_tick(), NicMachine::kNever);
  EXPECT_EQ(world.Do(NicEvent::kLinkUp), NicState::kHealthy);
}

TEST(NicMachine, DeadAtTheStartHasToProveItself) {
  World world;
  EXPECT_EQ(world.Do(NicEvent::kLinkDown, "no such interface"), NicState::kFailed);
  EXPECT_EQ(world.machine.reason(), "no such interface");
  EXPECT_EQ(world.machine.flaps_total(), 0u);
  EXPECT_EQ(world.Do(NicEvent::kLinkUp), NicState::kProving);
  EXPECT_EQ(world.ProofTime(), 300 * kMs);
  EXPECT_EQ(world.Pass(300 * kMs), NicState::kHealthy);
}

TEST(NicMachine, ANicThatWasNeverCabledIsNoFault) {
  World world;
  EXPECT_EQ(world.Do(NicEvent::kNoCable, "link down"), NicState::kUncabled);
  EXPECT_EQ(world.machine.reason(), "link down, and it was never up: no cable yet");
  EXPECT_EQ(world.Do(NicEvent::kDrillFail), NicState::kFailed);
  EXPECT_EQ(world.Do(NicEvent::kDrillRestore), NicState::kUncabled);
  EXPECT_EQ(world.Do(NicEvent::kDrain), NicState::kUncabled);
  EXPECT_EQ(world.Do(NicEvent::kUndrain), NicState::kUncabled);
  EXPECT_EQ(world.Do(NicEvent::kSuspected, "a job"), NicState::kUncabled);
  EXPECT_EQ(world.Do(NicEvent::kLinkUp), NicState::kProving);
  EXPECT_EQ(world.machine.reason(), "a cable was put in: proving for 300 ms");
  EXPECT_EQ(world.Pass(300 * kMs), NicState::kHealthy);
  // From then on it is a fault.
  EXPECT_EQ(world.Do(NicEvent::kNoCable, "link down"), NicState::kFailed);
  EXPECT_EQ(world.machine.reason(), "link down");
}

TEST(NicMachine, AnInterfaceThatGoesIsAFaultAlsoWithoutACable) {
  World world;
  EXPECT_EQ(world.Do(NicEvent::kNoCable, "link down"), NicState::kUncabled);
  EXPECT_EQ(world.Do(NicEvent::kLinkDown, "interface eth0 is gone"), NicState::kFailed);
  EXPECT_EQ(world.Do(NicEvent::kNoCable, "link down"), NicState::kUncabled);
}

TEST(NicMachine, DownFastUpSlow) {
  World world = Healthy();
  const NicTransition down = world.machine.Handle(NicEvent::kLinkDown, world.now, "link down");
  EXPECT_EQ(down.from, NicState::kHealthy);
  EXPECT_EQ(down.to, NicState::kFailed);
  EXPECT_EQ(down.reason, "link down");
  EXPECT_EQ(world.Do(NicEvent::kLinkUp), NicState::kProving);
  EXPECT_EQ(world.machine.reason(), "link up again: proving for 300 ms");
  EXPECT_EQ(world.Pass(299 * kMs), NicState::kProving);
  EXPECT_EQ(world.Pass(1 * kMs), NicState::kHealthy);
  EXPECT_EQ(world.machine.since(), world.now);
  EXPECT_EQ(world.machine.flaps_total(), 1u);
}

TEST(NicMachine, RepeatedReportsChangeNothing) {
  World world = Healthy();
  world.Do(NicEvent::kLinkDown);
  world.Do(NicEvent::kLinkDown);
  EXPECT_EQ(world.machine.flaps_total(), 1u);
  world.Do(NicEvent::kLinkUp);
  world.Pass(200 * kMs);
  world.Do(NicEvent::kLinkUp);  // does not restart the proof
  EXPECT_EQ(world.Pass(100 * kMs), NicState::kHealthy);
}

TEST(NicMachine, EachFlapDoublesTheProofUpToItsMaximum) {
  World world = Healthy();
  Nanos expected = 300 * kMs;
  for (int flap = 0; flap < 40; ++flap) {
    world.Do(NicEvent::kLinkDown);
    world.Pass(kMs);
    world.Do(NicEvent::kLinkUp);
    EXPECT_EQ(world.ProofTime(), expected) << flap;
    expected = std::min(2 * expected, 30 * kSecond);
  }
  EXPECT_EQ(world.Pass(30 * kSecond), NicState::kHealthy);
}

TEST(NicMachine, ADownDuringTheProofRestartsIt) {
  World world = Healthy();
  world.Do(NicEvent::kLinkDown);
  world.Do(NicEvent::kLinkUp);
  world.Pass(299 * kMs);
  EXPECT_EQ(world.Do(NicEvent::kLinkDown), NicState::kFailed);
  EXPECT_EQ(world.Pass(3600 * kSecond), NicState::kFailed);
}

TEST(NicMachine, ThePenaltyDecays) {
  World world = Healthy();
  for (int flap = 0; flap < 4; ++flap) {
    world.Do(NicEvent::kLinkDown);
    world.Do(NicEvent::kLinkUp);
  }
  EXPECT_EQ(world.ProofTime(), 2400 * kMs);
  // Two flaps are forgiven after two times the decay, and the next one comes on top.
  world.Pass(2 * world.policy.flap_decay);
  world.Do(NicEvent::kLinkDown);
  world.Do(NicEvent::kLinkUp);
  EXPECT_EQ(world.ProofTime(), 1200 * kMs);
  world.Pass(1000 * world.policy.flap_decay);
  world.Do(NicEvent::kLinkDown);
  world.Do(NicEvent::kLinkUp);
  EXPECT_EQ(world.ProofTime(), 300 * kMs);
  EXPECT_EQ(world.machine.flaps_total(), 6u);
}

TEST(NicMachine, DrillFailsAtOnceAndIsNoFlap) {
  World world = Healthy();
  EXPECT_EQ(world.Do(NicEvent::kDrillFail), NicState::kFailed);
  EXPECT_EQ(world.machine.reason(), "drill: fail-nic");
  EXPECT_TRUE(world.machine.link_up());
  EXPECT_EQ(world.Pass(3600 * kSecond), NicState::kFailed);
  EXPECT_EQ(world.Do(NicEvent::kDrillRestore), NicState::kProving);
  EXPECT_EQ(world.ProofTime(), world.policy.drill_proof);
  EXPECT_EQ(world.Pass(world.policy.drill_proof), NicState::kHealthy);
  EXPECT_EQ(world.machine.flaps_total(), 0u);
}

TEST(NicMachine, ARealFailureOutlivesADrill) {
  World world = Healthy();
  world.Do(NicEvent::kDrillFail);
  EXPECT_EQ(world.Do(NicEvent::kLinkDown), NicState::kFailed);
  EXPECT_EQ(world.machine.reason(), "drill: fail-nic; link down");
  EXPECT_EQ(world.Do(NicEvent::kDrillRestore), NicState::kFailed);
  EXPECT_EQ(world.machine.reason(), "link down");
  EXPECT_EQ(world.Do(NicEvent::kLinkUp), NicState::kProving);
}

TEST(NicMachine, RestoreDoesNotCutALongerProofShort) {
  World world = Healthy();
  for (int flap = 0; flap < 5; ++flap) {
    world.Do(NicEvent::kLinkDown);
    world.Do(NicEvent::kLinkUp);
  }
  EXPECT_EQ(world.ProofTime(), 4800 * kMs);
  world.Do(NicEvent::kDrillFail);
  EXPECT_EQ(world.Do(NicEvent::kDrillRestore), NicState::kProving);
  EXPECT_EQ(world.ProofTime(), 4800 * kMs);
}

TEST(NicMachine, DrainHidesAllStatesButAFailure) {
  World world = Healthy();
  EXPECT_EQ(world.Do(NicEvent::kDrain), NicState::kDrained);
  EXPECT_EQ(world.Do(NicEvent::kSuspected, "x"), NicState::kDrained);
  EXPECT_EQ(world.Do(NicEvent::kImpaired, "slow"), NicState::kDrained);
  EXPECT_EQ(world.Do(NicEvent::kLinkDown), NicState::kFailed);
  EXPECT_EQ(world.Do(NicEvent::kLinkUp), NicState::kDrained);
  EXPECT_EQ(world.Do(NicEvent::kUndrain), NicState::kProving);
  EXPECT_EQ(world.Pass(300 * kMs), NicState::kDegraded);
  EXPECT_EQ(world.machine.reason(), "slow");
  EXPECT_EQ(world.Do(NicEvent::kUnimpaired), NicState::kHealthy);
}

TEST(NicMachine, ADrainedNicProvesItselfMeanwhile) {
  World world = Healthy();
  world.Do(NicEvent::kDrain);
  world.Do(NicEvent::kLinkDown);
  world.Do(NicEvent::kLinkUp);
  EXPECT_EQ(world.Pass(300 * kMs), NicState::kDrained);
  EXPECT_EQ(world.Do(NicEvent::kUndrain), NicState::kHealthy);
}

TEST(NicMachine, UndrainOfADeadNicIsFailed) {
  World world = Healthy();
  world.Do(NicEvent::kDrain);
  world.Do(NicEvent::kLinkDown, "link down");
  EXPECT_EQ(world.Do(NicEvent::kUndrain), NicState::kFailed);
  EXPECT_EQ(world.machine.reason(), "link down");
}

TEST(NicMachine, OperatorsSettingsBeforeTheFirstReportOfTheLink) {
  World world;
  EXPECT_EQ(world.Do(NicEvent::kDrain), NicState::kDrained);
  EXPECT_EQ(world.Do(NicEvent::kDrillFail), NicState::kFailed);
  EXPECT_EQ(world.Do(NicEvent::kLinkUp), NicState::kFailed);
  EXPECT_EQ(world.Do(NicEvent::kDrillRestore), NicState::kDrained);
  world.Pass(300 * kMs);
  EXPECT_EQ(world.Do(NicEvent::kUndrain), NicState::kHealthy);
}

TEST(NicMachine, ComplaintsMakeItSuspectAndAreForgotten) {
  World world = Healthy();
  EXPECT_EQ(world.Do(NicEvent::kSuspected, "job 1: socket-error"), NicState::kSuspect);
  EXPECT_EQ(world.machine.reason(), "job 1: socket-error");
  world.Pass(4 * kSecond);
  EXPECT_EQ(world.Do(NicEvent::kSuspected, "job 2: silence"), NicState::kSuspect);  // lasts longer now
  EXPECT_EQ(world.machine.reason(), "job 2: silence");
  EXPECT_EQ(world.Pass(4 * kSecond), NicState::kSuspect);
  EXPECT_EQ(world.Pass(1 * kSecond), NicState::kHealthy);
  world.Do(NicEvent::kSuspected);
  EXPECT_EQ(world.Do(NicEvent::kForgiven), NicState::kHealthy);
}

TEST(NicMachine, NoNumberOfComplaintsFailsIt) {
  World world = Healthy();
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_EQ(world.Do(NicEvent::kSuspected, "again"), NicState::kSuspect);
    world.Pass(kMs);
  }
}

TEST(NicMachine, TicksAreNoEventsForOthers) {
  World world = Healthy();
  EXPECT_DEATH(world.machine.Handle(NicEvent::kProved, world.now), "invariant broken");
  EXPECT_DEATH(world.machine.Handle(NicEvent::kForgotten, world.now), "invariant broken");
}

// Goal: in every history a dead link never carries traffic, and once all is well again every NIC gets healthy automatically. Method:
// random events and stretches of time; then all faults end.
TEST(NicMachine, RandomHistoriesEndHealthy) {
  constexpr NicEvent kOutside[] = {NicEvent::kLinkUp,    NicEvent::kLinkDown,    NicEvent::kImpaired, NicEvent::kUnimpaired,
                                   NicEvent::kSuspected, NicEvent::kForgiven,    NicEvent::kDrain,    NicEvent::kUndrain,
                                   NicEvent::kDrillFail, NicEvent::kDrillRestore};
  for (uint32_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    World world;
    for (int step = 0; step < 200; ++step) {
      if (random() % 3 == 0) {
        world.Pass(static_cast<Nanos>(random() % 1000) * static_cast<Nanos>(random() % 20) * kMs);
      } else {
        world.Do(kOutside[random() % std::size(kOutside)], "random");
      }
      const NicMachine& machine = world.machine;
      const bool out = machine.drill_failed() || !machine.link_up() || machine.drained();
      ASSERT_FALSE(out && CarriesTraffic(machine.state())) << step;
      ASSERT_FALSE(machine.state() == NicState::kFailed && !machine.drill_failed() && machine.link_up()) << step;
      ASSERT_GT(machine.next_tick(), world.now) << step;
    }
    world.Do(NicEvent::kUndrain);
    world.Do(NicEvent::kDrillRestore);
    world.Do(NicEvent::kUnimpaired);
    world.Do(NicEvent::kLinkUp);
    ASSERT_EQ(world.Pass(world.policy.proof_max), NicState::kHealthy);
    ASSERT_EQ(world.machine.next_tick(), NicMachine::kNever);
  }
}

TEST(NicMachine, SilenceFailsItAndAnAnswerHasToBeProved) {
  World world = Healthy();
  EXPECT_EQ(world.Do(NicEvent::kSilent, "port of n0/rail0"), NicState::kFailed);
  EXPECT_EQ(world.machine.reason(), "port of n0/rail0");
  EXPECT_TRUE(world.machine.link_up());
  EXPECT_EQ(world.machine.flaps_total(), 1u);
  EXPECT_EQ(world.Do(NicEvent::kAnswered), NicState::kProving);
  EXPECT_EQ(world.machine.reason(), "answers again: proving for 300 ms");
  EXPECT_EQ(world.Pass(300 * kMs), NicState::kHealthy);
}

TEST(NicMachine, ALinkThatGoesDownExplainsItsSilence) {
  World world = Healthy();
  world.Do(NicEvent::kSilent, "silent");
  EXPECT_EQ(world.Do(NicEvent::kLinkDown, "link down"), NicState::kFailed);
  EXPECT_EQ(world.machine.reason(), "link down");
  EXPECT_EQ(world.machine.flaps_total(), 1u);  // one failure, seen twice
  EXPECT_EQ(world.Do(NicEvent::kSilent, "silent"), NicState::kFailed);
  EXPECT_EQ(world.machine.reason(), "link down");
  EXPECT_EQ(world.Do(NicEvent::kLinkUp), NicState::kProving);
}

TEST(NicMachine, ADrillOnASilentNicEndsInItsSilence) {
  World world = Healthy();
  world.Do(NicEvent::kSilent, "silent");
  world.Do(NicEvent::kDrillFail);
  EXPECT_EQ(world.machine.reason(), "drill: fail-nic; silent");
  EXPECT_EQ(world.Do(NicEvent::kDrillRestore), NicState::kFailed);
  EXPECT_EQ(world.machine.reason(), "silent");
  EXPECT_EQ(world.Do(NicEvent::kAnswered), NicState::kProving);
}

}  // namespace
}  // namespace r2cc::health
