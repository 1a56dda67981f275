#include "daemon/config/config_shown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "proto/config.pb.h"

namespace r2cc::daemon {
namespace {

using testing::HasSubstr;

const ConfigContext kContext{"/run", "host", "", "/lib"};

constexpr char kWhole[] = R"(
  node: "n0" listen: "10.0.0.1:7460" peers { node: "n1" address: "h1:7460" }
  nics { name: "rail0" interface: "eth1" address: "10.1.0.1" rate_bits_per_s: 7 port_guid: "0x0002c9030000abcd" cable_to: "n1/rail0" }
  store { etcd_endpoints: "e1:2379" etcd_tls { directory: "/e" } prefix: "/c/" }
  tls { directory: "/t" } nice: 3 realtime_priority: 0
  grants { roles: VIEW roles: OPERATE roles: DRILL users: "u" groups: "g" everyone: true on_nodes: "n1" operators: "o" }
  drills { allow: true } attach { uids: 5 gids: 6 } limits { nics_per_node: 32 nodes: 100 forget_nodes_after_h: 5 }
  log_level: "debug" insecure: true rdma { traffic_class: 106 service_level: 3 pkey_index: 2 })";

TEST(ConfigShown, TheShownConfigurationParsesAsTheSame) {
  const auto config = ParseConfig(kWhole, "f", kContext);
  ASSERT_TRUE(config.ok()) << config.status();
  const std::string shown = ShowConfig(*config);
  const auto again = ParseConfig(shown, "g", kContext);
  ASSERT_TRUE(again.ok()) << again.status() << shown;
  EXPECT_EQ(ShowConfig(*again), shown);
  for (const char* text : {"rail0", "0x0002c9030000abcd", "n1/rail0", "e1:2379", "/e/node.key", "/c/", "DRILL", "debug", "uids: 5",
                           "traffic_class: 106", "pkey_index: 2"})
    EXPECT_THAT(shown, HasSubstr(text));
}

TEST(ConfigShown, DefaultsToo) {
  const std::string shown = ShowConfig(*DefaultConfig(kContext));
  for (const char* text :
       {"node: \"host\"", "127.0.0.1:7460", "127.0.0.1:9460", "realtime_priority: 1", "log_level: \"info\"", "nodes: 8192"})
    EXPECT_THAT(shown, HasSubstr(text));
}

// A field that is added and not shown would be missed in the middle of the night.
TEST(ConfigShown, NoFieldIsForgotten) {
  std::set<std::string> known = {"node",     "listen", "peers",  "nics",   "store",  "tls",       "nice", "realtime_priority",
                                 "insecure", "grants", "drills", "attach", "limits", "log_level", "http", "rdma"};
  const auto* message = v1::DaemonConfig::descriptor();
  for (int i = 0; i < message->field_count(); ++i)
    EXPECT_TRUE(known.contains(message->field(i)->name())) << message->field(i)->name() << ": show it, and say whether a reload takes it";
}

}  // namespace
}  // namespace r2cc::daemon
