#include "health/view/node_health.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "health/view/node_health_rig.h"

namespace r2cc::health {
namespace {

TEST_F(NodeHealthTest, InitializingUntilEveryLinkIsReported) {
  EXPECT_TRUE(health_->initializing());
  EXPECT_EQ(health_->Snapshot().status, NodeStatus::kInitializing);
  EXPECT_EQ(See(EvidenceKind::kLinkUp, "r0"), "r0 PROVING>HEALTHY (link up); ");
  EXPECT_EQ(health_->Snapshot().status, NodeStatus::kInitializing);
  See(EvidenceKind::kLinkUp, "r1");
  EXPECT_FALSE(health_->initializing());
  EXPECT_EQ(health_->Snapshot().status, NodeStatus::kHealthy);
}

TEST_F(NodeHealthTest, TheNodesHealthSumsUpTheNics) {
  BothUp();
  EXPECT_EQ(See(EvidenceKind::kLinkDown, "r0", 0, "link down"), "r0 HEALTHY>FAILED (link down); ");
  EXPECT_EQ(health_->Snapshot().status, NodeStatus::kDegraded);
  See(EvidenceKind::kDrain, "r1");
  EXPECT_EQ(health_->Snapshot().status, NodeStatus::kUnhealthy);
  See(EvidenceKind::kUndrain, "r1");
  EXPECT_EQ(health_->Snapshot().status, NodeStatus::kDegraded);
  See(EvidenceKind::kLinkUp, "r0");
  EXPECT_EQ(health_->Snapshot().status, NodeStatus::kDegraded);
  EXPECT_EQ(health_->next_tick(), now_ + 300 * kNanosPerMs);
  EXPECT_EQ(Pass(300 * kNanosPerMs), "r0 PROVING>HEALTHY (link up); ");
  EXPECT_EQ(health_->Snapshot().status, NodeStatus::kHealthy);
  EXPECT_EQ(health_->next_tick(), NicMachine::kNever);
  EXPECT_EQ(Nic("r0").flaps_total, 1u);
}

TEST_F(NodeHealthTest, EvidenceOfAnUnknownNicChangesNothing) {
  BothUp();
  const uint64_t revision = health_->revision();
  EXPECT_EQ(See(EvidenceKind::kLinkDown, "r9"), "");
  EXPECT_EQ(SeePeer(EvidenceKind::kLinkDown, {"n1", "r0"}), "");
  EXPECT_EQ(SeePeer(EvidenceKind::kDrillFail, {"n1", "r0"}), "");
  EXPECT_EQ(health_->revision(), revision);
  EXPECT_TRUE(health_->Has("r1"));
  EXPECT_FALSE(health_->Has("r9"));
}

TEST_F(NodeHealthTest, ASlowNegotiatedRateDegrades) {
  BothUp();
  See(EvidenceKind::kRate, "r0", 25 * kGbit);
  EXPECT_EQ(See(EvidenceKind::kRate, "r0", 10 * kGbit), "r0 HEALTHY>DEGRADED (link runs at 10 Gbit/s instead of 25 Gbit/s); ");
  EXPECT_EQ(See(EvidenceKind::kRate, "r0", 0), "r0 DEGRADED>HEALTHY (link up); ");  // not known
  EXPECT_EQ(Nic("r0").rate_bits_per_s, 25 * kGbit);
  // Without a configured rate the best one so far is the measure.
  EXPECT_EQ(See(EvidenceKind::kRate, "r1", 10 * kGbit), "");
  EXPECT_EQ(Nic("r1").rate_bits_per_s, 10 * kGbit);
  EXPECT_EQ(See(EvidenceKind::kRate, "r1", 100 * kGbit), "");
  EXPECT_EQ(See(EvidenceKind::kRate, "r1", 2'500'000'000), "r1 HEALTHY>DEGRADED (link runs at 2.5 Gbit/s instead of 100 Gbit/s); ");
}

TEST_F(NodeHealthTest, ErrorsDegradeUntilTheyStop) {
  BothUp();
  EXPECT_EQ(See(EvidenceKind::kErrors, "r0", 999), "");
  EXPECT_EQ(See(EvidenceKind::kErrors, "r0", 1000, "10 rx_crc_errors in 1 s"), "r0 HEALTHY>DEGRADED (10 rx_crc_errors in 1 s); ");
  Pass(9 * kSecond);
  See(EvidenceKind::kErrors, "r0", 5000, "rx_errors");
  EXPECT_EQ(Nic("r0").reason, "rx_errors");
  EXPECT_EQ(Pass(9 * kSecond), "");
  See(EvidenceKind::kErrors, "r0", 0);
  EXPECT_EQ(health_->next_tick(), now_ + kSecond);
  EXPECT_EQ(Pass(kSecond), "r0 DEGRADED>HEALTHY (link up); ");
}

// The subnet manager may be wrong, or late: the own kernel decides.
TEST_F(NodeHealthTest, APortThatLeftTheFabricIsSuspectUntilItIsBack) {
  BothUp();
  EXPECT_EQ(See(EvidenceKind::kFabricGone, "r0", 0, "trap 65"), "r0 HEALTHY>SUSPECT (trap 65); ");
  EXPECT_EQ(See(EvidenceKind::kFabricBack, "r0"), "r0 SUSPECT>HEALTHY (link up); ");
}

TEST_F(NodeHealthTest, TwoImpairmentsAreOneState) {
  BothUp();
  See(EvidenceKind::kRate, "r0", 10 * kGbit);
  See(EvidenceKind::kErrors, "r0", 2000, "20 rx_errors in 1 s");
  EXPECT_EQ(Nic("r0").reason, "link runs at 10 Gbit/s instead of 25 Gbit/s; 20 rx_errors in 1 s");
  EXPECT_EQ(See(EvidenceKind::kRate, "r0", 25 * kGbit), "");
  EXPECT_EQ(Nic("r0").state, NicState::kDegraded);
  EXPECT_EQ(Pass(10 * kSecond), "r0 DEGRADED>HEALTHY (link up); ");
}

TEST_F(NodeHealthTest, OperatorsSettingsAreKeptAndRestored) {
  BothUp();
  EXPECT_TRUE(health_->settings().empty());
  See(EvidenceKind::kDrain, "r0");
  See(EvidenceKind::kWeight, "r1", 250);
  EXPECT_EQ(See(EvidenceKind::kDrillFail, "r1"), "r1 HEALTHY>FAILED (drill: fail-nic); ");
  const OperatorSettings settings = health_->settings();
  EXPECT_EQ(settings, (OperatorSettings{{"r0", {true, false, 1000}}, {"r1", {false, true, 250, now_ + kDrillDefault}}}));

  OperatorSettings more = settings;
  more["r9"] = {true, true, 1, now_ + kSecond};
  more["r1"].weight_permille = 60'000;
  health_ = Make(more);
  EXPECT_EQ(Nic("r0").state, NicState::kDrained);
  EXPECT_EQ(Nic("r1").state, NicState::kFailed);
  EXPECT_EQ(Nic("r1").operator_weight_permille, 1000);
  EXPECT_TRUE(health_->initializing());
  BothUp();
  EXPECT_EQ(Nic("r0").state, NicState::kDrained);
  EXPECT_EQ(Nic("r1").state, NicState::kFailed);
  EXPECT_TRUE(Nic("r1").link_up);
  EXPECT_EQ(See(EvidenceKind::kDrillRestore, "r1"), "r1 FAILED>PROVING (drill over: proving for 300 ms); ");
  EXPECT_EQ(See(EvidenceKind::kUndrain, "r0"), "r0 DRAINED>HEALTHY (link up); ");
}

TEST_F(NodeHealthTest, AWeightOutOfRangeIsCut) {
  See(EvidenceKind::kWeight, "r0", 5000);
  EXPECT_EQ(Nic("r0").operator_weight_permille, 1000);
  See(EvidenceKind::kWeight, "r0", -3);
  EXPECT_EQ(Nic("r0").operator_weight_permille, 0);
}

TEST_F(NodeHealthTest, TheRevisionGrowsWithChangesAlone) {
  BothUp();
  uint64_t revision = health_->revision();
  See(EvidenceKind::kLinkUp, "r0");
  See(EvidenceKind::kErrors, "r0", 0);
  See(EvidenceKind::kCarrierFlips, "r0", 2);
  health_->Learn("r9", "m", "p");
  health_->SetAddress("r9", "10.0.0.9");
  Pass(kSecond);
  EXPECT_EQ(health_->revision(), revision);
  for (const auto& change : std::vector<std::function<void()>>{
           [&] { See(EvidenceKind::kWeight, "r0", 10); }, [&] { See(EvidenceKind::kRate, "r1", 10); },
           [&] { See(EvidenceKind::kLinkDown, "r0"); }, [&] { See(EvidenceKind::kDrain, "r0"); },
           [&] { health_->SetAddress("r0", "10.0.0.7"); }, [&] { health_->Learn("r0", "02:00:00:00:00:01", ""); },
           [&] { health_->Learn("r0", "", "0000:81:00.0"); }}) {
    change();
    EXPECT_EQ(health_->revision(), revision + 1);
    revision = health_->revision();
  }
  EXPECT_EQ(Nic("r0").identity.address, "10.0.0.7");
  EXPECT_EQ(Nic("r0").identity.mac, "02:00:00:00:00:01");
  EXPECT_EQ(Nic("r0").identity.pci, "0000:81:00.0");
}

TEST_F(NodeHealthTest, TimeThatGoesBackCountsAsTheSameTime) {
  BothUp();
  See(EvidenceKind::kLinkDown, "r0");
  See(EvidenceKind::kLinkUp, "r0");
  const Nanos due = health_->next_tick();
  health_->Handle({"n0", {"n0", "r1"}, EvidenceKind::kLinkDown, 0, 0, {}, ""});
  EXPECT_EQ(Nic("r1").since, now_);
  EXPECT_EQ(health_->next_tick(), due);
}

TEST_F(NodeHealthTest, VerdictsCanBeExplained) {
  BothUp();
  See(EvidenceKind::kLinkDown, "r0", 0, "link down");
  const auto about = health_->log().About({"n0", "r0"}, 10);
  ASSERT_EQ(about.size(), 2u);
  EXPECT_EQ(about[0].evidence.detail, "link down");
}

TEST(NodeHealth, ANicTwiceEndsTheProcess) {
  EXPECT_DEATH(NodeHealth("n0", {{.name = "r0"}, {.name = "r0"}}, NodePolicy(), {}, 0), "invariant broken");
}

// Goal: no evidence, in whatever order, gives a dead or drilled NIC back to the traffic, and when all is well the node gets healthy
// automatically. Method: random evidence of every kind with hostile values.
TEST_F(NodeHealthTest, RandomEvidence) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    health_ = Make();
    for (int step = 0; step < 300; ++step) {
      const std::string nic = "r" + std::to_string(random() % 3);
      const NicKey peer = {"n" + std::to_string(random() % 3), "r" + std::to_string(random() % 2)};
      Evidence evidence = {"n1",
                           {random() % 4 == 0 ? "n1" : "n0", nic},
                           static_cast<EvidenceKind>(random() % kEvidenceKinds),
                           static_cast<int64_t>(random() >> (random() % 64)),
                           now_,
                           peer,
                           "random"};
      if (random() % 5 == 0) evidence.value = -evidence.value;
      health_->Handle(evidence);
      if (random() % 3 == 0) Pass(static_cast<Nanos>(random() % (10 * kSecond)));
      for (const NicStatus& status : health_->Snapshot().nics) {
        ASSERT_FALSE((!status.link_up || status.drill_failed || status.drained) && CarriesTraffic(status.state)) << step;
        ASSERT_LE(status.operator_weight_permille, 1000) << step;
      }
      ASSERT_GT(health_->next_tick(), now_) << step;
    }
    for (const std::string nic : {"r0", "r1"}) {
      See(EvidenceKind::kUndrain, nic);
      See(EvidenceKind::kDrillRestore, nic);
      See(EvidenceKind::kRate, nic, INT64_MAX);
      See(EvidenceKind::kLinkUp, nic);
      See(EvidenceKind::kRailAnswers, nic);
      See(EvidenceKind::kRdmaUp, nic);
      See(EvidenceKind::kLargePasses, nic);
      for (const std::string node : {"n0", "n1", "n2"})
        for (const std::string other : {"r0", "r1"}) See(EvidenceKind::kPathBack, nic, 0, "", {node, other});
    }
    Pass(60 * kSecond);
    ASSERT_EQ(health_->Snapshot().status, NodeStatus::kHealthy);
    ASSERT_EQ(health_->next_tick(), NicMachine::kNever);
  }
}

TEST_F(NodeHealthTest, ASilentRailFailsAndComesBackProved) {
  BothUp();
  EXPECT_EQ(See(EvidenceKind::kRailSilent, "r0", 3, "port of n0/r0"), "r0 HEALTHY>FAILED (port of n0/r0); ");
  EXPECT_TRUE(Nic("r0").link_up);
  EXPECT_EQ(See(EvidenceKind::kRailAnswers, "r0"), "r0 FAILED>PROVING (answers again: proving for 300 ms); ");
  EXPECT_EQ(Pass(kSecond), "r0 PROVING>HEALTHY (link up); ");
}

TEST_F(NodeHealthTest, ABrokenPathDegradesUntilItIsBack) {
  BothUp();
  EXPECT_EQ(See(EvidenceKind::kPathBroken, "r0", 0, "path to n1", {"n1", "r0"}), "r0 HEALTHY>DEGRADED (path to n1); ");
  EXPECT_EQ(See(EvidenceKind::kPathBroken, "r0", 0, "path to n2", {"n2", "r0"}), "");
  EXPECT_EQ(Nic("r0").reason, "path to n1, and 1 more");
  EXPECT_EQ(See(EvidenceKind::kPathBack, "r0", 0, "", {"n1", "r0"}), "");
  EXPECT_EQ(See(EvidenceKind::kPathBack, "r0", 0, "", {"n2", "r0"}), "r0 DEGRADED>HEALTHY (link up); ");
}

TEST_F(NodeHealthTest, LostLargePacketsDegradeUntilTheyPass) {
  BothUp();
  EXPECT_EQ(See(EvidenceKind::kLargeLost, "r0", 0, "packets over 1500 bytes are lost"),
            "r0 HEALTHY>DEGRADED (packets over 1500 bytes are lost); ");
  EXPECT_EQ(See(EvidenceKind::kPathBroken, "r0", 0, "path to n1", {"n1", "r0"}), "");
  EXPECT_EQ(Nic("r0").reason, "path to n1; packets over 1500 bytes are lost");
  EXPECT_EQ(See(EvidenceKind::kPathBack, "r0", 0, "", {"n1", "r0"}), "");
  EXPECT_EQ(See(EvidenceKind::kLargePasses, "r0"), "r0 DEGRADED>HEALTHY (link up); ");
  See(EvidenceKind::kLargeLost, "r0", 0, "packets over 1500 bytes are lost");
  See(EvidenceKind::kLinkDown, "r0");
  See(EvidenceKind::kLinkUp, "r0");
  EXPECT_EQ(Pass(kSecond), "r0 PROVING>HEALTHY (link up); ");
}

TEST_F(NodeHealthTest, ALinkThatGoesDownForgetsItsBrokenPaths) {
  BothUp();
  See(EvidenceKind::kPathBroken, "r0", 0, "path to n1", {"n1", "r0"});
  See(EvidenceKind::kLinkDown, "r0");
  See(EvidenceKind::kLinkUp, "r0");
  EXPECT_EQ(Pass(kSecond), "r0 PROVING>HEALTHY (link up); ");
}

TEST_F(NodeHealthTest, AnInconclusiveSilenceMakesSuspectAndIsForgotten) {
  BothUp();
  EXPECT_EQ(See(EvidenceKind::kRailInconclusive, "r0", 0, "cannot tell", {"n1", "r0"}), "r0 HEALTHY>SUSPECT (cannot tell); ");
  EXPECT_EQ(Pass(5 * kSecond), "r0 SUSPECT>HEALTHY (link up); ");
}

TEST_F(NodeHealthTest, TheRateIsTheLesserOfConfiguredAndNegotiated) {
  BothUp();
  EXPECT_EQ(Nic("r0").rate_bits_per_s, 25 * kGbit);
  See(EvidenceKind::kRate, "r0", 100 * kGbit);  // shaped
  EXPECT_EQ(Nic("r0").rate_bits_per_s, 25 * kGbit);
  See(EvidenceKind::kRate, "r0", 10 * kGbit);
  EXPECT_EQ(Nic("r0").rate_bits_per_s, 10 * kGbit);
  EXPECT_EQ(Nic("r0").state, NicState::kDegraded);
}

}  // namespace
}  // namespace r2cc::health
