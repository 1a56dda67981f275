#include "daemon/rails/rail_alarms.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace r2cc::daemon {
namespace {

using health::NicKey;
using health::NicState;
using Kind = RailAlarm::Kind;

constexpr Nanos kSecond = kNanosPerSecond;
constexpr Nanos kNow = 100 * kSecond;

class RailAlarmsTest : public testing::Test {
 protected:
  RailAlarmsTest() {
    facts_.node = "n0";
    facts_.now = kNow;
    facts_.view = &view_;
  }

  static health::NodeState Node(const std::string& name, int rails) {
    health::NodeState state;
    state.node = name;
    state.epoch = {1, 1};
    for (int rail = 0; rail < rails; ++rail) {
      health::NicStatus& nic = state.nics.emplace_back();
      nic.identity.name = "rail" + std::to_string(rail);
      nic.identity.interface = "eth" + std::to_string(rail);
      nic.state = NicState::kHealthy;
      nic.link_up = true;
    }
    return state;
  }
  void Own(int rails) {
    own_ = Node("n0", rails);
    for (const health::NicStatus& nic : own_.nics) facts_.nics.push_back(nic.identity.name);
    view_.SetOwn(own_, kNow);
  }
  // Its daemon is up, and each of its rails answered so long ago; 0: never.
  void Peer(const std::string& name, int rails, Nanos answered_ago) {
    view_.Merge(Node(name, rails), kNow);
    facts_.last_messages[name] = kNow - kSecond / 2;
    for (int rail = 0; rail < std::min<int>(rails, static_cast<int>(facts_.nics.size())); ++rail) {
      const std::string nic = "rail" + std::to_string(rail);
      health::RailPairStatus& pair = facts_.pairs.emplace_back();
      pair.key = {{"n0", nic}, {name, nic}};
      pair.since = kNow - 60 * kSecond;
      pair.measures.sent = 100;
      pair.measures.last_answer = answered_ago == 0 ? 0 : kNow - answered_ago;
    }
  }
  void Answers(const std::string& nic, const NicKey& peer) { facts_.strays.push_back({{"n0", nic}, peer}); }
  health::RailPairStatus& Pair(const std::string& nic, const std::string& peer) {
    return *std::find_if(facts_.pairs.begin(), facts_.pairs.end(),
                         [&](const auto& pair) { return pair.key.own.nic == nic && pair.key.peer.node == peer; });
  }
  std::string Alarms() const {
    std::string text;
    for (const RailAlarm& alarm : FindRailAlarms(facts_)) text += alarm.text + "\n";
    return text;
  }

  health::ClusterView view_{"n0"};
  health::NodeState own_;
  RailAlarmFacts facts_;
};

TEST_F(RailAlarmsTest, NothingIsWrong) {
  Own(2);
  Peer("n1", 2, kSecond / 10);
  EXPECT_EQ(Alarms(), "");
}

TEST_F(RailAlarmsTest, NobodyAnswersOnAnyRail) {
  Own(2);
  Peer("n1", 2, 10 * kSecond);
  const std::string blind =
      "no rail of this node has been answered for 10 s (rail0, rail1), though the daemon of n1 is up: does a firewall drop UDP on the "
      "rails? Until it lets the port of `listen` (7460) through, r2ccd does not see a silent NIC; `r2ccctl doctor` tests each rail\n";
  EXPECT_EQ(Alarms(), blind);
  for (auto& pair : facts_.pairs) pair.measures.last_answer = 0;
  EXPECT_EQ(Alarms(), blind) << "nobody ever did";
  for (auto& pair : facts_.pairs) pair.measures.sent = 4;
  EXPECT_EQ(Alarms(), "") << "nobody was asked often enough";
}

TEST_F(RailAlarmsTest, ANodeThatIsOffIsNoFirewall) {
  Own(2);
  Peer("n1", 2, 60 * kSecond);
  facts_.last_messages["n1"] = kNow - 3 * kSecond;
  EXPECT_EQ(Alarms(), "");
  facts_.last_messages.clear();
  EXPECT_EQ(Alarms(), "");
}

TEST_F(RailAlarmsTest, OneAnswerOnOneRailIsEnough) {
  Own(2);
  Peer("n1", 2, 60 * kSecond);
  Pair("rail1", "n1").measures.last_answer = kNow - 9 * kSecond;
  EXPECT_EQ(Alarms(), "");
}

TEST_F(RailAlarmsTest, ADownNicNeedNotAnswer) {
  Own(2);
  Peer("n1", 2, 60 * kSecond);
  health::NodeState n1 = Node("n1", 2);
  for (health::NicStatus& nic : n1.nics) nic.link_up = false;
  n1.epoch.counter = 2;
  view_.Merge(n1, kNow);
  EXPECT_EQ(Alarms(), "");
}

TEST_F(RailAlarmsTest, ASuspectNicForTenSecondsAndWhatToDo) {
  Own(2);
  Peer("n1", 2, kSecond / 10);
  Pair("rail1", "n1").measures.last_answer = kNow - 60 * kSecond;
  own_.nics[1].state = NicState::kSuspect;
  own_.nics[1].since = kNow - 10 * kSecond;
  view_.SetOwn(own_, kNow);
  EXPECT_EQ(Alarms(),
            "rail1 is SUSPECT for 10 s: no answer from n1/rail1; check eth1 of n0, n1/rail1 and their switch ports; `r2ccctl nic drain "
            "n0/rail1` keeps traffic off it meanwhile; `r2ccctl nic why n0/rail1` has the evidence\n");
  own_.nics[1].since = kNow - 9 * kSecond;
  view_.SetOwn(own_, kNow);
  EXPECT_EQ(Alarms(), "");
}

// The cables of n1 are crossed, and there is no third node: so it may be those of n0.
TEST_F(RailAlarmsTest, CrossedCablesOfTwoNodes) {
  Own(3);
  Peer("n1", 3, kSecond / 10);
  for (const char* nic : {"rail0", "rail1"}) Pair(nic, "n1").measures.last_answer = 0;
  for (health::NicStatus& nic : own_.nics) {
    nic.state = nic.identity.name == "rail2" ? NicState::kHealthy : NicState::kSuspect;
    nic.since = kNow - 60 * kSecond;
  }
  view_.SetOwn(own_, kNow);
  ASSERT_EQ(MayBeCrossed(facts_).size(), 2u);
  Answers("rail1", {"n1", "rail0"});
  Answers("rail0", {"n1", "rail1"});
  EXPECT_EQ(
      Alarms(),
      "n1/rail0 seems to be on the network of rail1: n1/rail0 answers rail1 (eth1) and not rail0 (eth0); check where the cables of n1 "
      "and n0 lead\n"
      "n1/rail1 seems to be on the network of rail0: n1/rail1 answers rail0 (eth0) and not rail1 (eth1); check where the cables of n1 "
      "and n0 lead\n")
      << "and no alarm that they are SUSPECT";
}

TEST_F(RailAlarmsTest, CrossedCablesOfThisNode) {
  Own(2);
  Peer("n1", 2, 0);
  Peer("n2", 2, 0);
  for (const char* node : {"n1", "n2"}) {
    Answers("rail1", {node, "rail0"});
    Answers("rail0", {node, "rail1"});
  }
  EXPECT_EQ(Alarms(),
            "rail0 (eth0) of n0 seems to be on the network of rail1: n1/rail1, n2/rail1 answer rail0 (eth0) and not rail1 (eth1); check "
            "where its cable leads\n"
            "rail1 (eth1) of n0 seems to be on the network of rail0: n1/rail0, n2/rail0 answer rail1 (eth1) and not rail0 (eth0); check "
            "where its cable leads\n")
      << "and no alarm of a firewall";
}

TEST_F(RailAlarmsTest, CrossedCablesOfOneOfSeveralNodes) {
  Own(2);
  Peer("n1", 2, 0);
  Peer("n2", 2, kSecond / 10);
  Answers("rail1", {"n1", "rail0"});
  EXPECT_EQ(Alarms(),
            "n1/rail0 seems to be on the network of rail1: n1/rail0 answers rail1 (eth1) and not rail0 (eth0); check where its cable "
            "leads\n")
      << "n2 answers rail0, so the cable of n0 is right";
}

// As in a network that all rails share: what answers on its own rail is not crossed.
TEST_F(RailAlarmsTest, AnAnswerOnTheOwnRailCountsMore) {
  Own(2);
  Peer("n1", 2, kSecond / 10);
  Answers("rail1", {"n1", "rail0"});
  EXPECT_EQ(Alarms(), "");
  EXPECT_TRUE(MayBeCrossed(facts_).empty());
}

TEST_F(RailAlarmsTest, ADeadPortInANetworkThatAllRailsShareIsNotCrossed) {
  Own(2);
  Peer("n1", 2, kSecond / 10);
  Pair("rail0", "n1").measures.last_answer = 0;
  Answers("rail1", {"n1", "rail0"});
  EXPECT_EQ(Alarms(), "");
}

TEST_F(RailAlarmsTest, ARailWithoutAPartner) {
  Own(4);
  Peer("n1", 3, kSecond / 10);
  EXPECT_EQ(Alarms(), "rail3 (eth3) has no partner on n1: no job sends to it over this rail\n");
  Peer("n2", 4, kSecond / 10);
  EXPECT_EQ(Alarms(), "") << "a mixed cluster: rail3 leads to n2";
  facts_.job_nodes = {"n1", "n2"};
  EXPECT_EQ(Alarms(), "rail3 (eth3) has no partner on n1: no job sends to it over this rail\n");
}

TEST(UnwatchedRails, ALineForEachSetOfRails) {
  const auto texts = [](const std::map<std::string, std::set<std::string>>& jobs) {
    std::string text;
    for (const RailAlarm& alarm : UnwatchedRails(jobs)) text += alarm.text + "\n";
    return text;
  };
  EXPECT_EQ(texts({{"train", {}}}), "");
  EXPECT_EQ(texts({{"train", {"eth0"}}, {"eval", {"eth0"}}, {"other", {"eth0", "eth9"}}}),
            "jobs eval, train use eth0, which r2ccd does not watch: name it in nics, or the NICs of r2ccd in R2CC_RAILS\n"
            "job other uses eth0, eth9, which r2ccd does not watch: name it in nics, or the NICs of r2ccd in R2CC_RAILS\n");
}

TEST_F(RailAlarmsTest, ACableNeedsItsOtherEndAlone) {
  Own(2);
  facts_.cables["rail1"] = {"n2", "rail1"};
  Peer("n1", 1, kSecond / 10);
  EXPECT_EQ(Alarms(), "");
}

}  // namespace
}  // namespace r2cc::daemon
