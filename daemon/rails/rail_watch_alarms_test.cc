#include "daemon/rails/rail_watch_rig.h"
#include "health/view/node_health.h"

namespace r2cc::daemon {
namespace {

class RailWatchAlarmsTest : public RailWatchTest {
 protected:
  std::vector<std::string> Alarms(int node) {
    std::vector<std::string> texts;
    for (const RailAlarm& alarm : nodes_[node]->watch->Alarms()) texts.push_back(alarm.text);
    return texts;
  }
  // The cables of `node` in rail0 and rail1 are in each other's switch.
  void Cross(int node) {
    Break([node](const std::string& from, const std::string& to) {
      const auto switch_of = [&](const std::string& address) {
        for (int rail = 0; rail < 4; ++rail)
          if (address == Address(node, rail)) return rail < 2 ? 1 - rail : rail;
        return address[5] - '0';
      };
      return switch_of(from) != switch_of(to);
    });
  }
  // The node's view of the NIC at `when`, by what its rail watch has reported until then.
  health::NicState StateAt(int node, int rail, Nanos when) {
    health::NodeHealth health(Name(node), {{.name = Port(node, rail).nic}}, {}, {}, 0);
    health::Evidence up{.observer = Name(node), .subject = Port(node, rail), .kind = EvidenceKind::kLinkUp};
    health.Handle(up);
    for (const health::Evidence& evidence : nodes_[node]->seen)
      if (evidence.subject == Port(node, rail) && evidence.when <= when) health.Handle(evidence);
    health.Tick(when);
    return health.Snapshot().nics[0].state;
  }
  // For how long the NIC has not been healthy since `begun`.
  Nanos TroubleSince(int node, int rail, Nanos begun) {
    Nanos last = begun;
    for (Nanos when = begun; when <= core_.Now(); when += 100 * kMs)
      if (StateAt(node, rail, when) != health::NicState::kHealthy) last = when;
    return last - begun;
  }
};

TEST_F(RailWatchAlarmsTest, AFirewallOnAllRailsIsAnAlarmWithinThirtySeconds) {
  Make(2, 4);
  ExchangeMessages();
  core_.Advance(5'000 * kMs);
  EXPECT_EQ(Alarms(0), std::vector<std::string>());
  Break([](const auto&, const auto&) { return true; });
  core_.Advance(15'000 * kMs);
  for (const int node : {0, 1}) {
    ASSERT_EQ(Alarms(node).size(), 1U) << node;
    EXPECT_EQ(Alarms(node)[0].find("no rail of this node has been answered for 10 s (rail0, rail1, rail2, rail3)"), 0U) << Alarms(node)[0];
  }
  Mend();
  core_.Advance(5'000 * kMs);
  EXPECT_EQ(Alarms(0), std::vector<std::string>());
}

TEST_F(RailWatchAlarmsTest, ADaemonThatIsOffIsNone) {
  Make(2, 4);
  core_.Advance(5'000 * kMs);
  Break([](const auto&, const auto&) { return true; });
  core_.Advance(60'000 * kMs);
  EXPECT_EQ(Alarms(0), std::vector<std::string>());
}

TEST_F(RailWatchAlarmsTest, CrossedCablesAreNamedByBothOfTwoNodes) {
  Make(2, 4);
  ExchangeMessages();
  Cross(1);
  core_.Advance(20'000 * kMs);
  ASSERT_EQ(Alarms(0).size(), 2U);
  EXPECT_EQ(Alarms(0)[0].find("n1/rail0 seems to be on the network of rail1: n1/rail0 answers rail1 (eth1) and not rail0 (eth0)"), 0U)
      << Alarms(0)[0];
  ASSERT_EQ(Alarms(1).size(), 2U);
  Mend();
  core_.Advance(20'000 * kMs);
  EXPECT_EQ(Alarms(0), std::vector<std::string>());
}

// An inconclusive report is repeated every 2 s while it lasts, and forgotten after 5 s without. No timer adds to that, however long nothing
// was answered; that may go on after the cables are right, while a kernel has wrong neighbour entries.
TEST_F(RailWatchAlarmsTest, CrossedCablesThatArePutRightAreInconclusiveForSixSecondsAtMost) {
  Make(2, 4);
  ExchangeMessages();
  for (const Nanos crossed : {15, 120}) {
    Cross(1);
    core_.Advance(crossed * kNanosPerSecond);
    ASSERT_EQ(StateAt(0, 0, core_.Now()), health::NicState::kSuspect);
    ASSERT_EQ(Alarms(0).size(), 2U);
    const Nanos mended = core_.Now();
    Mend();
    core_.Advance(20'000 * kMs);
    for (const int node : {0, 1})
      for (const int rail : {0, 1}) EXPECT_LE(TroubleSince(node, rail, mended), 6'000 * kMs) << node << "/" << rail << " " << crossed;
  }
}

TEST_F(RailWatchAlarmsTest, TheNodeWithTheCrossedCablesNamesItself) {
  Make(3, 2);
  ExchangeMessages();
  Cross(1);
  core_.Advance(20'000 * kMs);
  ASSERT_EQ(Alarms(1).size(), 2U);
  EXPECT_EQ(Alarms(1)[0].find("rail0 (eth0) of n1 seems to be on the network of rail1: n0/rail1, n2/rail1 answer rail0 (eth0)"), 0U)
      << Alarms(1)[0];
  ASSERT_EQ(Alarms(0).size(), 2U);
  EXPECT_EQ(Alarms(0)[0].find("n1/rail0 seems to be on the network of rail1"), 0U) << Alarms(0)[0];
}

TEST_F(RailWatchAlarmsTest, ADeadPortIsNotCrossed) {
  Make(3, 2);
  ExchangeMessages();
  BreakPort(1, 0);
  core_.Advance(20'000 * kMs);
  for (const int node : {0, 1, 2}) EXPECT_EQ(Alarms(node), std::vector<std::string>()) << node;
}

}  // namespace
}  // namespace r2cc::daemon
