#include "netplugin/config/config.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace r2cc::net {
namespace {

using Environment = std::map<std::string, std::string>;

GetEnv From(const Environment& environment) {
  return [environment](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  };
}

PluginConfig Loaded(const Environment& environment) {
  PluginConfig config;
  std::string error;
  EXPECT_TRUE(LoadConfig(From(environment), &config, &error)) << error;
  return config;
}

std::string Refused(const std::string& name, const std::string& value) {
  PluginConfig config;
  config.job = "untouched";
  std::string error;
  EXPECT_FALSE(LoadConfig(From({{name, value}}), &config, &error)) << name << "=" << value;
  EXPECT_EQ(config.job, "untouched");
  EXPECT_EQ(error.find('\n'), std::string::npos);
  EXPECT_EQ(error.rfind(name + "=", 0), 0u) << error;
  return error;
}

TEST(Config, DefaultsArePlain) {
  const PluginConfig config = Loaded({});
  EXPECT_EQ(config.rails, "");
  EXPECT_EQ(config.transport, TransportOption::kTcp);
  EXPECT_EQ(config.oob_ifname, "");
  EXPECT_EQ(config.attach_socket, "/run/r2cc/attach.sock");
  EXPECT_EQ(config.node, "");
  EXPECT_EQ(config.job, "");
  EXPECT_FALSE(config.mode.has_value());
  EXPECT_TRUE(config.fail_rails.empty());
  EXPECT_EQ(config.deadline_ms, 30000);
  EXPECT_EQ(config.silence_ms, 250);
  EXPECT_FALSE(config.sockets_per_rail.has_value());
  EXPECT_EQ(config.tcp_congestion, "");
  EXPECT_TRUE(config.link_monitor);
  EXPECT_FALSE(config.checksum);
  EXPECT_FALSE(config.bulk_threads.has_value());
  EXPECT_EQ(config.collnet_min_bytes, std::nullopt);
  EXPECT_EQ(config.collnet_deadline_ms, 1800000);
  EXPECT_EQ(config.log, LogLevel::kWarn);
  EXPECT_EQ(config.chunk_bytes, std::nullopt);
}

TEST(Config, TakesWhatIsGiven) {
  const PluginConfig config = Loaded({{"R2CC_RAILS", "eth0,10.0.0.1"},
                                      {"R2CC_TRANSPORT", "tcp"},
                                      {"R2CC_OOB_IFNAME", "mgmt0"},
                                      {"R2CC_ATTACH", "none"},
                                      {"R2CC_NODE", "node7"},
                                      {"R2CC_JOB", "llama"},
                                      {"R2CC_MODE", "0"},
                                      {"R2CC_FAIL_RAILS", "eth0,eth1@1500"},
                                      {"R2CC_DEADLINE_MS", "5000"},
                                      {"R2CC_SILENCE_MS", "100"},
                                      {"R2CC_SOCKETS_PER_RAIL", "4"},
                                      {"R2CC_TCP_CONGESTION", "dctcp"},
                                      {"R2CC_LINK_MONITOR", "0"},
                                      {"R2CC_BULK_THREADS", "2"},
                                      {"R2CC_COLLNET_MIN_BYTES", "4194304"},
                                      {"R2CC_COLLNET_DEADLINE_MS", "60000"},
                                      {"R2CC_CHECKSUM", "1"},
                                      {"R2CC_LOG", "debug"},
                                      {"R2CC_CHUNK_BYTES", "4096"}});
  EXPECT_EQ(config.rails, "eth0,10.0.0.1");
  EXPECT_EQ(config.transport, TransportOption::kTcp);
  EXPECT_EQ(config.oob_ifname, "mgmt0");
  EXPECT_EQ(config.attach_socket, "");
  EXPECT_EQ(config.node, "node7");
  EXPECT_EQ(config.job, "llama");
  EXPECT_EQ(config.mode, Mode::kOneRail);
  ASSERT_EQ(config.fail_rails.size(), 2u);
  EXPECT_EQ(config.fail_rails[0].rail, "eth0");
  EXPECT_EQ(config.fail_rails[0].after_ms, 0);
  EXPECT_EQ(config.fail_rails[1].rail, "eth1");
  EXPECT_EQ(config.fail_rails[1].after_ms, 1500);
  EXPECT_EQ(config.deadline_ms, 5000);
  EXPECT_EQ(config.silence_ms, 100);
  EXPECT_EQ(config.sockets_per_rail, std::optional(4));
  EXPECT_EQ(config.tcp_congestion, "dctcp");
  EXPECT_FALSE(config.link_monitor);
  EXPECT_TRUE(config.checksum);
  EXPECT_EQ(config.bulk_threads, std::optional(2));
  EXPECT_EQ(config.collnet_min_bytes, std::optional<uint64_t>(4'194'304));
  EXPECT_EQ(config.collnet_deadline_ms, 60000);
  EXPECT_EQ(config.log, LogLevel::kDebug);
  EXPECT_EQ(config.chunk_bytes, 4096u);
}

TEST(Config, TheProcessesEnvironmentIsOneOfThem) {
  setenv("R2CC_JOB", "of-the-process", 1);
  PluginConfig config;
  std::string error;
  EXPECT_TRUE(LoadConfig(FromEnvironment, &config, &error)) << error;
  EXPECT_EQ(config.job, "of-the-process");
  unsetenv("R2CC_JOB");
  EXPECT_EQ(FromEnvironment("R2CC_JOB"), nullptr);
}

TEST(Config, EmptyMeansUnset) {
  Environment all;
  for (const Variable& variable : Variables()) all[variable.name] = "";
  const PluginConfig config = Loaded(all);
  EXPECT_EQ(config.attach_socket, "/run/r2cc/attach.sock");
  EXPECT_EQ(config.deadline_ms, 30000);
}

TEST(Config, EdgesOfRangesAreAllowed) {
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{{"R2CC_DEADLINE_MS", "86400000"},
                                                                                    {"R2CC_SILENCE_MS", "20"},
                                                                                    {"R2CC_SOCKETS_PER_RAIL", "1"},
                                                                                    {"R2CC_SOCKETS_PER_RAIL", "16"},
                                                                                    {"R2CC_CHUNK_BYTES", "4194304"},
                                                                                    {"R2CC_CHUNK_BYTES", "4224"},
                                                                                    {"R2CC_COLLNET_MIN_BYTES", "0"},
                                                                                    {"R2CC_COLLNET_MIN_BYTES", "1000000000000"},
                                                                                    {"R2CC_MODE", "3"},
                                                                                    {"R2CC_MODE", "2"},
                                                                                    {"R2CC_LOG", "info"},
                                                                                    {"R2CC_LOG", "warn"},
                                                                                    {"R2CC_TRANSPORT", "auto"},
                                                                                    {"R2CC_ATTACH", "/" + std::string(106, 'x')},
                                                                                    {"R2CC_NODE", std::string(63, 'n')}})
    Loaded({{name, value}});
}

TEST(Config, BadValuesAreRefusedByName) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> bad = {
      {"R2CC_TRANSPORT", {"rdma", "TCP", "udp", " tcp"}},
      {"R2CC_ATTACH", {"attach.sock", "NONE", "/" + std::string(107, 'x')}},
      {"R2CC_NODE", {"a/b", "a b", "\xc3\xa4", std::string(64, 'n'), "a\nb"}},
      {"R2CC_JOB", {"a/b", " ", std::string(64, 'n')}},
      {"R2CC_MODE", {"4", "-1", "on", "1 "}},
      {"R2CC_FAIL_RAILS", {",", "eth0,", ",eth0", "@5", "eth0@", "eth0@x", "eth0@-1", "eth0@1@2", "eth0@86400001", "eth0,eth0@5"}},
      {"R2CC_DEADLINE_MS", {"99", "86400001", "-5", "5s", "1e3", "0x100", " 500", "99999999999999999999", "+500"}},
      {"R2CC_SILENCE_MS", {"19", "60001", "fast"}},
      {"R2CC_SOCKETS_PER_RAIL", {"0", "17", "two"}},
      {"R2CC_TCP_CONGESTION", {std::string(16, 'x')}},
      {"R2CC_LINK_MONITOR", {"2", "yes", "true"}},
      {"R2CC_BULK_THREADS", {"-1", "17", "auto"}},
      {"R2CC_COLLNET_MIN_BYTES", {"-1", "4M", "1000000000001"}},
      {"R2CC_COLLNET_DEADLINE_MS", {"999", "86400001", "never"}},
      {"R2CC_CHECKSUM", {"2", "on"}},
      {"R2CC_LOG", {"trace", "WARN", "1"}},
      {"R2CC_CHUNK_BYTES", {"4095", "4097", "131073", "4194305", "0", "128K"}},
  };
  for (const auto& [name, values] : bad)
    for (const std::string& value : values) EXPECT_NE(Refused(name, value).find("want "), std::string::npos);
}

TEST(Config, ErrorLinesNameValueAndWayOut) {
  EXPECT_EQ(Refused("R2CC_LINK_MONITOR", "yes"), "R2CC_LINK_MONITOR=yes: want 0 or 1");
  EXPECT_EQ(Refused("R2CC_TRANSPORT", "rdma"), "R2CC_TRANSPORT=rdma: want auto, tcp or verbs");
  EXPECT_NE(Refused("R2CC_FAIL_RAILS", "a,a").find("a is there twice"), std::string::npos);
  EXPECT_EQ(Refused("R2CC_LOG", "a\nb"), "R2CC_LOG=a?b: want warn, info or debug");
  EXPECT_LT(Refused("R2CC_LOG", std::string(5000, 'x')).size(), 200u);
}

TEST(Config, SilenceMustBeShorterThanTheDeadline) {
  PluginConfig config;
  std::string error;
  EXPECT_FALSE(LoadConfig(From({{"R2CC_SILENCE_MS", "500"}, {"R2CC_DEADLINE_MS", "500"}}), &config, &error));
  EXPECT_EQ(error, "R2CC_SILENCE_MS=500: want less than R2CC_DEADLINE_MS (500)");
}

TEST(Config, SystemNamesFillOnlyWhatIsMissing) {
  PluginConfig config = Loaded({{"R2CC_NODE", "mine"}});
  FillFromSystem(&config);
  EXPECT_EQ(config.node, "mine");
  EXPECT_EQ(config.job, "unit_test");
  config = Loaded({});
  FillFromSystem(&config);
  EXPECT_FALSE(config.node.empty());
}

TEST(ConfigTable, IsCompleteAndItsDefaultsAreAllowed) {
  std::set<std::string> names;
  for (const Variable& variable : Variables()) {
    EXPECT_TRUE(names.insert(variable.name).second) << variable.name;
    EXPECT_EQ(std::string(variable.name).rfind("R2CC_", 0), 0u);
    EXPECT_NE(std::string(variable.allowed), "");
    EXPECT_NE(std::string(variable.reason), "");
    PluginConfig config;
    std::string why;
    if (*variable.default_text != '\0') {
      EXPECT_TRUE(variable.set(variable.default_text, &config, &why)) << variable.name;
    }
  }
}

TEST(UnknownVariables, AreNamedWithASuggestion) {
  const char* environment[] = {"PATH=/bin",         "R2CC_RAIL=eth0", "R2CC_RAILS=eth0", "R2CC_DEADLINE=5", "R2CC_SOMETHING_ELSE=1",
                               "R2CC_REQUIRE=root", "NCCL_NET=R2CC",  "MY_R2CC_RAIL=1",  "R2CC_LOG",        nullptr};
  const std::vector<std::string> warnings = UnknownVariables(environment);
  ASSERT_EQ(warnings.size(), 3u);
  EXPECT_EQ(warnings[0], "R2CC_RAIL is not a variable of R2CC: ignored (did you mean R2CC_RAILS?)");
  EXPECT_EQ(warnings[1], "R2CC_DEADLINE is not a variable of R2CC: ignored (did you mean R2CC_DEADLINE_MS?)");
  EXPECT_EQ(warnings[2], "R2CC_SOMETHING_ELSE is not a variable of R2CC: ignored");
  EXPECT_TRUE(UnknownVariables(nullptr).empty());
}

}  // namespace
}  // namespace r2cc::net
