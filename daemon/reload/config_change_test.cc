#include "daemon/reload/config_change.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace r2cc::daemon {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kBase[] = R"(
  node: "n0" insecure: true store { embedded_node: "n1" }
  peers { node: "n1" address: "h1:1" } peers { node: "n2" address: "h2:1" }
  nics { name: "rail0" interface: "eth0" } nics { name: "rail1" interface: "eth1" rate_bits_per_s: 5 })";

Config Parse(const std::string& text) {
  const auto config = ParseConfig(text, "f", {"/run", "host", "", "/lib"});
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *config : Config();
}

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

TEST(ConfigChange, NothingChanges) {
  const Config config = Parse(kBase);
  const ConfigChange change = Change(config, Parse(std::string("\n\n") + kBase));
  EXPECT_THAT(change.applied, IsEmpty());
  EXPECT_THAT(change.needs_restart, IsEmpty());
}

TEST(ConfigChange, ARunningDaemonTakesThese) {
  std::string next = Replaced(kBase, "\"h2:1\"", "\"h2:2\"");
  next = Replaced(next, "rate_bits_per_s: 5", "rate_bits_per_s: 6");
  const ConfigChange change = Change(Parse(kBase), Parse(next + R"( peers { node: "n3" address: "h3:1" } log_level: "debug"
      drills { allow: true } grants { roles: VIEW everyone: true } limits { nodes: 7 forget_nodes_after_h: 5 } attach { uids: 7 })"));
  EXPECT_THAT(change.applied, ElementsAre("rates of NICs: rail1", "peers: new n3, another address for n2", "grants", "drills: allowed",
                                          "log_level: debug", "attach: the users whose jobs may attach", "limits"));
  EXPECT_THAT(change.needs_restart, IsEmpty());
  ASSERT_EQ(change.config.nics.size(), 2u);
  EXPECT_EQ(change.config.nics[1].rate_bits_per_s, 6u);
  EXPECT_EQ(change.config.peers.size(), 3u);
  EXPECT_EQ(change.config.log_level, Severity::kDebug);
  EXPECT_TRUE(change.config.drills);
  EXPECT_THAT(change.config.attach.uids, ElementsAre(7u));
  EXPECT_EQ(change.config.nodes_max, 7u);
  EXPECT_EQ(change.config.forget_after, 5 * 3600 * kNanosPerSecond);
  EXPECT_EQ(change.config.nics_per_node, kNicsPerNodeDefault);
}

TEST(ConfigChange, AFileThatNamesNoNicsTakesNoneAway) {
  Config empty;
  empty.nics_by_default = true;
  empty.nics = {{"eth7", "eth7"}};
  const ConfigChange change = Change(Parse(kBase), empty);
  ASSERT_EQ(change.config.nics.size(), 2u);
  EXPECT_EQ(change.config.nics[0].name, "rail0");
  EXPECT_FALSE(change.config.nics_by_default);
  EXPECT_THAT(change.needs_restart, testing::Contains("nics: the file names none"));
}

TEST(ConfigChange, PendingChangesAreNamedAndNotInForce) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"nice: 5", "nice"},
      {"realtime_priority: 0", "realtime_priority"},
      {"listen: '127.0.0.1:9'", "listen"},
      {"http { listen: '127.0.0.1:9' }", "http"},
      {"rdma { traffic_class: 106 }", "rdma"},
      {"tls { directory: '/t' }", "tls: the names of the files; what is in them is followed without"},
      {"nics { name: 'rail2' interface: 'eth2' cable_to: 'n1/rail2' }", "nics with cables: rail2"},
  };
  for (const auto& [more, expected] : cases) {
    const ConfigChange change = Change(Parse(kBase), Parse(std::string(kBase) + more));
    EXPECT_THAT(change.needs_restart, ElementsAre(expected)) << more;
    EXPECT_THAT(change.applied, IsEmpty()) << more;
    EXPECT_THAT(Change(change.config, Parse(std::string(kBase) + more)).needs_restart, ElementsAre(expected))
        << "it is reported until it is so";
  }
  EXPECT_THAT(Change(Parse(kBase), Parse(Replaced(kBase, "\"n0\"", "\"n9\""))).needs_restart, ElementsAre("node"));
}

TEST(ConfigChange, ANicThatIsNamedByItsNetworkMayHaveAnotherAddressThere) {
  Config before = Parse(kBase), after = before;
  before.nics[0].address = "10.1.0.7";
  after.nics[0].address = "10.1.0.8";
  EXPECT_THAT(Change(before, after).applied, ElementsAre("nics: another interface or address for rail0"));
  before.nics[0].network = after.nics[0].network = *Network::Parse("10.1.0.0/16");
  const ConfigChange change = Change(before, after);
  EXPECT_THAT(change.needs_restart, IsEmpty());
  EXPECT_THAT(change.applied, IsEmpty());
  EXPECT_EQ(change.config.nics[0].address, "10.1.0.8");
  after.nics[0].network = *Network::Parse("10.1.0.0/24");
  EXPECT_THAT(Change(before, after).applied, ElementsAre("nics: another interface or address for rail0"));
}

TEST(ConfigChange, NicsComeAndGo) {
  std::string next = Replaced(kBase, "nics { name: \"rail0\" interface: \"eth0\" }", "nics { name: \"rail2\" interface: \"eth2\" }");
  next = Replaced(next, "interface: \"eth1\"", "interface: \"eth7\"");
  const ConfigChange change = Change(Parse(kBase), Parse(next));
  EXPECT_THAT(change.applied, ElementsAre("nics: new rail2, without rail0, another interface or address for rail1"));
  EXPECT_THAT(change.needs_restart, IsEmpty());
  ASSERT_EQ(change.config.nics.size(), 2u);
  EXPECT_EQ(change.config.nics[0].name, "rail2");
  EXPECT_EQ(change.config.nics[1].interface, "eth7");
  EXPECT_THAT(Change(change.config, Parse(next)).applied, IsEmpty());
}

TEST(ConfigChange, CablesWaitAndTheirNicsStay) {
  const std::string cabled = Replaced(kBase, "interface: \"eth0\"", "interface: \"eth0\" cable_to: \"n1/rail0\"");
  ConfigChange change = Change(Parse(cabled), Parse(Replaced(kBase, "nics { name: \"rail0\" interface: \"eth0\" }", "")));
  EXPECT_THAT(change.needs_restart, ElementsAre("nics with cables: rail0"));
  EXPECT_THAT(change.applied, IsEmpty());
  EXPECT_EQ(change.config.nics.size(), 2u);
  change = Change(Parse(kBase), Parse(cabled));
  EXPECT_THAT(change.needs_restart, ElementsAre("nics with cables: rail0"));
  EXPECT_EQ(change.config.nics[0].cable_node, "");
}

TEST(ConfigChange, TheStoreStaysWhereItIs) {
  const std::string moved = Replaced(kBase, "\"h1:1\"", "\"h1:2\"");
  const ConfigChange change = Change(Parse(kBase), Parse(moved));
  EXPECT_THAT(change.needs_restart, ElementsAre("store"));
  EXPECT_THAT(change.applied, IsEmpty());
  EXPECT_THAT(Change(change.config, Parse(moved)).needs_restart, ElementsAre("store"));
}

TEST(ConfigChange, NoPeersInTheClearNextToARestart) {
  const ConfigChange change =
      Change(Parse("node: 'n0'"), Parse("node: 'n0' listen: '127.0.0.1:7460' insecure: true peers { node: 'n1' address: 'h1:1' }"));
  EXPECT_THAT(change.applied, IsEmpty());
  EXPECT_THAT(change.needs_restart, ElementsAre("insecure", "peers: new n1: with tls or insecure"));
}

}  // namespace
}  // namespace r2cc::daemon
