#include "daemon/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace r2cc::daemon {
namespace {

const ConfigContext kContext = {"/run/x", "host-1", "", "/lib/x"};

std::string ErrorOf(const std::string& text) {
  const auto config = ParseConfig(text, "f.conf", kContext);
  return config.ok() ? "no error" : std::string(config.status().message());
}

TEST(ConfigTest, AWholeFile) {
  const auto config = ParseConfig(R"(
    node: "n0"
    listen: "127.0.0.1:7460"
    peers { node: "n0" address: "127.0.0.1:7460" }
    peers { node: "n1" address: "[::1]:7461" }
    nics { name: "rail0" interface: "eth1" rate_bits_per_s: 500000000 }
    nics { name: "rail1" address: "127.1.0.1" }
    nics { name: "eth7" }
    nics { name: "ib0" port_guid: "0x0002c9030000abcd" }
    store { embedded_node: "n1" }
    tls { certificate_file: "c" key_file: "k" ca_file: "a" }
  )",
                                  "f.conf", kContext);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->node, "n0");
  ASSERT_EQ(config->peers.size(), 1u) << "a node is no peer of its own: one file may serve all nodes";
  EXPECT_EQ(config->peers[0].node, "n1");
  ASSERT_EQ(config->nics.size(), 4u);
  EXPECT_EQ(config->nics[0], (NicSpec{"rail0", "eth1", "", 500000000, 6}));
  EXPECT_EQ(config->nics[1], (NicSpec{"rail1", "", "127.1.0.1", 0, 7}));
  EXPECT_EQ(config->nics[2], (NicSpec{"eth7", "eth7", "", 0, 8}));
  EXPECT_EQ(config->store_node, "n1");
  EXPECT_EQ(config->tls->ca_file, "a");
  EXPECT_FALSE(config->etcd.has_value());
  EXPECT_EQ(config->nics.back().port_guid, 0x0002c9030000abcdu);
  EXPECT_EQ(config->nics.back().interface, "") << "an InfiniBand port may have no interface";
  EXPECT_EQ(config->control_socket(), "/run/x-control/r2ccd.sock");
}

TEST(ConfigTest, LaterFilesAddToEarlierOnes) {
  const auto config = ParseConfig({{"a.conf", "node: \"n0\"\npeers { node: \"n1\" address: \"h1:1\" }\ninsecure: true\nnice: 5"},
                                   {"b.conf", "peers { node: \"n2\" address: \"h2:1\" }\n"},
                                   {"c.conf", "nice: -3\ninsecure: false\ntls { directory: \"/t\" }"}},
                                  kContext);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->node, "n0");
  EXPECT_EQ(config->peers, (std::vector<PeerSpec>{{"n1", "h1:1"}, {"n2", "h2:1"}}));
  EXPECT_EQ(config->nice, -3);
  EXPECT_FALSE(config->insecure) << "also a later value that is the type's default counts";
}

TEST(ConfigTest, AMistakeIsReportedWithItsOwnFile) {
  const auto error = [](const std::vector<ConfigText>& texts) {
    const auto config = ParseConfig(texts, kContext);
    return config.ok() ? "no error" : std::string(config.status().message());
  };
  const ConfigText good{"a.conf", "insecure: true\npeers { node: \"n1\" address: \"h1:1\" }\nnice: 5\n"};
  EXPECT_THAT(error({good, {"b.conf", "\npeers { node: \"n2\" address: \"h2\" }"}}), testing::StartsWith("b.conf:2: peer n2: "));
  EXPECT_THAT(error({good, {"b.conf", ""}, {"c.conf", "nics {"}}), testing::StartsWith("c.conf:1: "));
  EXPECT_THAT(error({good, {"b.conf", "\n\nnice: 77"}}), testing::StartsWith("b.conf:3: nice is "));
  EXPECT_THAT(error({{"a.conf", "nice: 77"}, {"b.conf", "node: \"n0\""}}), testing::StartsWith("a.conf:1: nice is "));
  EXPECT_THAT(error({{"a.conf", "insecure: true"}, {"b.conf", "nice: 5 nice: 6"}}), testing::StartsWith("b.conf:1: "))
      << "twice in one file is a mistake";
  auto config = ParseConfig({good, {"b.conf", "\nnics { name: \"eth9\" }"}}, kContext);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(std::string(CheckInterfaces(*config, {"eth0"}).message()), testing::StartsWith("b.conf:2: NIC eth9: "));
}

TEST(ConfigTest, EverybodyMayAttachUnlessTheFileNamesUsers) {
  const auto access = [](const std::string& text) {
    const auto config = ParseConfig(text, "f.conf", kContext);
    EXPECT_TRUE(config.ok()) << config.status();
    return config.ok() ? config->attach : AttachAccess();
  };
  const std::vector<uint32_t> groups = {100, 4242};
  EXPECT_TRUE(access("").Allows(1000, groups));
  const AttachAccess narrowed = access("attach { uids: 7 uids: 8 gids: 4242 }");
  EXPECT_TRUE(narrowed.Allows(7, {}));
  EXPECT_TRUE(narrowed.Allows(1000, groups)) << "by a group";
  EXPECT_TRUE(narrowed.Allows(0, {})) << "root";
  EXPECT_FALSE(narrowed.Allows(1000, {}));
  EXPECT_FALSE(narrowed.Allows(4242, {})) << "a gid is no uid";
}

TEST(ConfigTest, ACableNamesItsOtherEnd) {
  const auto config = ParseConfig(R"(node: "n0" nics { name: "rail0" cable_to: "n1/rail3" })", "f.conf", kContext);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->nics[0].cable_node, "n1");
  EXPECT_EQ(config->nics[0].cable_nic, "rail3");
  for (const std::string wrong : {"n1", "n1/", "/rail3", "n0/rail3", "n1/a b"}) {
    const auto refused = ParseConfig("node: \"n0\"\nnics { name: \"rail0\" cable_to: \"" + wrong + "\" }", "f.conf", kContext);
    EXPECT_EQ(refused.status().message(), "f.conf:2: NIC rail0: cable_to '" + wrong + "' is not a NODE/NIC of another node");
  }
}

TEST(ConfigTest, NodesThatLeftAreForgottenAfterHours) {
  EXPECT_EQ(ParseConfig("", "f.conf", kContext)->forget_after, kForgetAfterDefault);
  EXPECT_EQ(ParseConfig("limits { forget_nodes_after_h: 2 }", "f.conf", kContext)->forget_after, 7200 * kNanosPerSecond);
  EXPECT_EQ(ParseConfig("limits { forget_nodes_after_h: 9000 }", "f.conf", kContext).status().message(),
            "f.conf:1: limits: forget_nodes_after_h is 1 to 8760, not 9000");
}

TEST(ConfigTest, DefaultsAndTheFlag) {
  auto config = ParseConfig("", "f.conf", kContext);
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->node, "host-1");
  EXPECT_EQ(config->listen, kLoopbackListen) << "no caller can prove its identity";
  EXPECT_EQ(ParseConfig("insecure: true", "f.conf", kContext)->listen, kDefaultListen);
  EXPECT_EQ(ParseConfig("tls { directory: '/d' }", "f.conf", kContext)->listen, kDefaultListen);
  EXPECT_EQ(config->state_file(), "/lib/x/state");
  EXPECT_EQ(config->nice, kDefaultNice);
  EXPECT_EQ(ParseConfig("nice: 5", "f.conf", kContext)->nice, 5);
  EXPECT_EQ(config->realtime_priority, kDefaultRealtimePriority);
  EXPECT_EQ(config->log_level, std::nullopt);
  EXPECT_EQ(ParseConfig("realtime_priority: 0", "f.conf", kContext)->realtime_priority, 0);
  config = ParseConfig("node: 'a'", "f.conf", {"/run/x", "host-1", "b"});
  EXPECT_EQ(config->node, "b");
  EXPECT_EQ(DefaultConfig(kContext)->node, "host-1");
  EXPECT_FALSE(DefaultConfig({"/run/x", "host-1", "a/b"}).ok());
}

TEST(ConfigTest, AGarbledFileIsReportedWithItsLine) {
  EXPECT_THAT(ErrorOf("node: 'n0'\nnicks { name: 'a' }\n"),
              testing::StartsWith("f.conf:2: there is no field 'nicks' here; there are node, listen, peers, nics, "));
  EXPECT_THAT(ErrorOf("tls { dir: 'x' }\n"),
              testing::HasSubstr("there is no field 'dir' here; there are certificate_file, key_file, ca_file, directory"));
  EXPECT_EQ(ErrorOf("node: 'n0'\n\nlisten {{{"), "f.conf:3: Expected \":\", found \"{\".") << "first error only";
  EXPECT_EQ(ErrorOf("nics { name: 'a'").substr(0, 9), "f.conf:1:");
  EXPECT_EQ(ErrorOf("nics { rate_bits_per_s: 'fast' }").substr(0, 9), "f.conf:1:");
  EXPECT_EQ(ErrorOf(std::string("\0\xff\x7f", 3)).substr(0, 9), "f.conf:1:");
}

TEST(ConfigTest, NamesAndListsAreBounded) {
  const auto lines = [](int count, const char* begin, const char* end) {
    std::string text;
    for (int i = 0; i < count; ++i) text += begin + std::to_string(i) + end + "\n";
    return text;
  };
  EXPECT_EQ(ErrorOf("node: '" + std::string(63, 'n') + "'"), "no error");
  EXPECT_THAT(ErrorOf("node: '" + std::string(64, 'n') + "'"), testing::HasSubstr("at most 63"));
  EXPECT_EQ(ErrorOf("nics { name: '" + std::string(23, 'n') + "' interface: 'e' }"), "no error");
  EXPECT_THAT(ErrorOf("nics { name: '" + std::string(24, 'n') + "' interface: 'e' }"), testing::HasSubstr("at most 23"));
  EXPECT_EQ(ErrorOf(lines(16, "nics { name: 'r", "' }")), "no error");
  EXPECT_THAT(ErrorOf(lines(17, "nics { name: 'r", "' }")), testing::HasSubstr("16"));
  EXPECT_EQ(ErrorOf("limits { nics_per_node: 64 }\n" + lines(64, "nics { name: 'r", "' }")), "no error");
  EXPECT_NE(ErrorOf("limits { nics_per_node: 64 }\n" + lines(65, "nics { name: 'r", "' }")), "no error");
  EXPECT_NE(ErrorOf("limits { nics_per_node: 65 }"), "no error");
  EXPECT_EQ(ErrorOf("limits { nodes: 65536 }"), "no error");
  EXPECT_NE(ErrorOf("limits { nodes: 65537 }"), "no error");
  std::string peers;
  for (int i = 0; i < 1025; ++i) peers += "peers { node: 'n" + std::to_string(i) + "' address: 'h" + std::to_string(i) + ":1' }\n";
  EXPECT_THAT(ErrorOf(peers), testing::HasSubstr("more than 1024 peers"));
  EXPECT_EQ(ErrorOf("insecure: true store {" + lines(16, "etcd_endpoints: 'e", ":2379'") + "}"), "no error");
  EXPECT_THAT(ErrorOf("insecure: true store {" + lines(17, "etcd_endpoints: 'e", ":2379'") + "}"),
              testing::HasSubstr("more than 16 etcd_endpoints"));
}

TEST(ConfigTest, AWrongValueIsReportedWithItsLine) {
  EXPECT_EQ(ErrorOf("nics { name: 'a' }\nnics { name: 'a' }"), "f.conf:2: NIC a is listed twice");
  EXPECT_EQ(ErrorOf("nics { name: 'a' interface: 'e' }\nnics { name: 'b' interface: 'e' }"),
            "f.conf:2: NICs a and b have one interface, e");
  EXPECT_EQ(ErrorOf("nics { name: 'a' address: '127.0.0.1' }\nnics { name: 'b' address: '127.0.0.1' }"),
            "f.conf:2: NICs a and b have one address, 127.0.0.1");
  EXPECT_EQ(ErrorOf("nics { name: 'a' address: '127.0.0' }"), "f.conf:1: NIC a: '127.0.0' is not a numeric IP address");
  EXPECT_EQ(ErrorOf("nics { name: 'a/b' }"), "f.conf:1: NIC name 'a/b' is not one (letters, digits and -_.:@, at most 23)");
  EXPECT_EQ(ErrorOf("\nlisten: 'nowhere'"), "f.conf:2: listen: 'nowhere' is not host:port (no port)");
  EXPECT_EQ(ErrorOf("peers { node: 'n1' address: 'h:0' }"),
            "f.conf:1: peer n1: 'h:0' is not host:port (the port is a number from 1 to 65535)");
  EXPECT_EQ(ErrorOf("peers { node: 'n1' address: 'h:1' }\npeers { node: 'n1' address: 'h:2' }"), "f.conf:2: peer n1 is listed twice");
  EXPECT_EQ(ErrorOf("peers { node: 'n1' address: 'h:1' }\npeers { node: 'n2' address: 'h:1' }"),
            "f.conf:2: peers n1 and n2 have one address, h:1");
  EXPECT_EQ(ErrorOf("node: 'n0'\nstore { embedded_node: 'n9' }"),
            "f.conf:2: store.embedded_node 'n9' is neither this node (n0) nor a peer");
  EXPECT_EQ(ErrorOf("tls { key_file: 'k' }"), "f.conf:1: tls needs a directory, or certificate_file, key_file and ca_file");
  EXPECT_EQ(ErrorOf("store { etcd_endpoints: 'http://e0:2379' }"),
            "f.conf:1: store.etcd_endpoints: 'http://e0:2379' is not host:port (remove what is before the host)");
  EXPECT_EQ(ErrorOf("store { etcd_endpoints: 'e0:2379' etcd_tls { key_file: 'k' } }"),
            "f.conf:1: store.etcd_tls needs a directory, or certificate_file, key_file and ca_file");
  EXPECT_EQ(ErrorOf("store { etcd_tls { key_file: 'k' } }"), "f.conf:1: store.etcd_tls without etcd_endpoints");
  EXPECT_EQ(ErrorOf("store { etcd_endpoints: 'e0:2379' embedded_node: 'n0' }"),
            "f.conf:1: store is either embedded_node or etcd_endpoints, not both");
  EXPECT_EQ(ErrorOf("nics { name: 'a' port_guid: '0x12' }"), "f.conf:1: NIC a: port_guid '0x12' is not like 0x0002c9030000abcd");
  EXPECT_EQ(ErrorOf("node: 'a b'").substr(0, 9), "f.conf:1:");
  EXPECT_EQ(ErrorOf("node: 'n0'\nnice: -21"), "f.conf:2: nice is -20 to 19, not -21");
  EXPECT_EQ(ErrorOf("nice: 20"), "f.conf:1: nice is -20 to 19, not 20");
  EXPECT_EQ(ParseConfig("log_level: 'debug'", "f.conf", kContext)->log_level, Severity::kDebug);
  EXPECT_EQ(ErrorOf("log_level: 'loud'"), "f.conf:1: log_level is debug, info, warning or error, not 'loud'");
  EXPECT_EQ(ErrorOf("realtime_priority: 100"), "f.conf:1: realtime_priority is 0 to 99, not 100");
  EXPECT_EQ(ErrorOf(R"(nics { name: 'a' address: '\n\033[2J' })"), "f.conf:1: NIC a: '??[2J' is not a numeric IP address")
      << "one line, and nothing for the terminal";
}

TEST(ConfigTest, HostPort) {
  EXPECT_EQ(ParseHostPort("h:1", false)->port, 1);
  EXPECT_EQ(ParseHostPort("[fd00::1]:65535", false)->host, "fd00::1");
  EXPECT_TRUE(ParseHostPort("0.0.0.0:0", true).ok());
  for (const char* wrong : {"", ":", "h", "h:", ":1", "h:65536", "h:-1", "h:1x", "h: 1", "fd00::1:1", "[]:1", "[x]:1", "a b:1", "h:0"})
    EXPECT_FALSE(ParseHostPort(wrong, false).ok()) << wrong;
}

TEST(ConfigTest, AnInterfaceThatIsNotThereIsNamed) {
  const auto config =
      ParseConfig("\nnics { name: 'rail0' interface: 'etj0' }\nnics { name: 'x' address: '127.0.0.2' }", "f.conf", kContext);
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(CheckInterfaces(*config, {"lo", "eth0"}).message(),
            "f.conf:2: NIC rail0: there is no interface 'etj0' on this machine; it has eth0 lo");
  EXPECT_TRUE(CheckInterfaces(*config, {"etj0"}).ok());
}

TEST(ConfigTest, WithoutTlsNobodyIsSpokenTo) {
  EXPECT_THAT(ErrorOf("\nlisten: '10.0.0.1:1'"), testing::StartsWith("f.conf:2: listen: 10.0.0.1 is not loopback needs tls"));
  EXPECT_THAT(ErrorOf("listen: 'host:1'"), testing::HasSubstr("host is not loopback"));
  for (const char* listen : {"127.0.0.61:1", "localhost:1", "[::1]:1"})
    EXPECT_EQ(ErrorOf(std::string("listen: '") + listen + "'"), "no error");
  EXPECT_THAT(ErrorOf("\npeers { node: 'n1' address: 'h:1' }"), testing::StartsWith("f.conf:2: peers needs tls"));
  EXPECT_THAT(ErrorOf("store { etcd_endpoints: 'h:1' }"), testing::StartsWith("f.conf:1: a store needs tls"));
  for (const std::string trust : {"insecure: true", "tls { directory: '/d' }"})
    EXPECT_EQ(ErrorOf(trust + " listen: '10.0.0.1:1' peers { node: 'n1' address: 'h:1' } store { etcd_endpoints: 'h:1' }"), "no error");
  EXPECT_EQ(ErrorOf("tls { directory: '/d' key_file: 'k' }"), "f.conf:1: tls is either a directory or three files, not both");
  EXPECT_EQ(ErrorOf("tls { }"), "f.conf:1: tls needs a directory, or certificate_file, key_file and ca_file");
  EXPECT_EQ(ParseConfig("tls { directory: '/d' }", "f.conf", kContext)->tls->key_file, "/d/node.key");
  EXPECT_EQ(ParseConfig("tls { directory: '/d/{node}' }\nnode: 'n7'", "f.conf", kContext)->tls->key_file, "/d/n7/node.key");
  const auto each =
      ParseConfig("tls { certificate_file: '{node}.crt' key_file: '{node}.key' ca_file: 'ca.crt' }", "f.conf", {"/r", "h", "n8"});
  EXPECT_EQ(each->tls->certificate_file, "n8.crt");
  EXPECT_EQ(each->tls->key_file, "n8.key");
  EXPECT_EQ(each->tls->ca_file, "ca.crt");
}

TEST(ConfigTest, GrantsAndDrills) {
  const auto config =
      ParseConfig("grants { roles: VIEW roles: DRILL users: 'root' operators: '*' } drills { allow: true }", "f.conf", kContext);
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_EQ(config->grants.size(), 1u);
  EXPECT_TRUE(config->grants[0].view && config->grants[0].drill && !config->grants[0].operate);
  EXPECT_TRUE(config->drills);
  EXPECT_FALSE(DefaultConfig(kContext)->drills);
  EXPECT_EQ(ErrorOf("grants { users: 'root' }"), "f.conf:1: grants gives no roles: VIEW, OPERATE, DRILL");
  EXPECT_EQ(ErrorOf("\ngrants { roles: VIEW }"), "f.conf:2: grants names no caller: set users, groups, everyone or operators");
  EXPECT_THAT(ErrorOf("grants { roles: VIEW operators: 'a b' }"), testing::StartsWith("f.conf:1: grants: 'a b' is neither a name"));
  EXPECT_THAT(ErrorOf("store { prefix: 'x' }"), testing::HasSubstr("store.prefix 'x' is not like /r2cc/"));
}

}  // namespace
}  // namespace r2cc::daemon
