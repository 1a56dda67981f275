// HTTP of the real daemon.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "daemon/http/http_client_rig.h"
#include "daemon/program/r2ccd_rig.h"

namespace r2cc::daemon {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class R2ccdHttpTest : public R2ccdTest {
 protected:
  R2ccdHttpTest() {
    nodes_ = 2;
    port_ = FreePort();
    http_ = "listen: \"127.0.0.1:" + std::to_string(port_) + "\"";
  }
  std::string Get(const std::string& target) {
    HttpClient client(port_);
    client.Send("GET " + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    return client.Response();
  }
  static std::string BodyOf(const std::string& response) {
    const size_t at = response.find("\r\n\r\n");
    return at == std::string::npos ? "" : response.substr(at + 4);
  }
  // The daemon makes it of two clocks with each answer, so its last digits differ.
  static std::string WithoutSince(const std::string& json) {
    return std::regex_replace(json, std::regex("\"since_ns\": \"[0-9]+\""), "\"since_ns\": \"\"");
  }
  // The output of `r2ccctl` for n0.
  std::string Ctl(const std::string& arguments) {
    const std::string out = folder_ + "/ctl.out";
    EXPECT_EQ(std::system(("client/r2ccctl --run_dir " + RunDir(0) + " -o json " + arguments + " > " + out).c_str()), 0);
    return ReadFile(out);
  }

  int port_;
};

TEST_F(R2ccdHttpTest, StatesWhatR2ccctlPrints) {
  StartDaemon(0);
  ASSERT_TRUE(WaitUntil([&] { return Get("/readyz").starts_with("HTTP/1.1 200"); })) << Get("/readyz");
  EXPECT_THAT(Get("/healthz"), HasSubstr("ok: r2ccd of node n0 serves plan"));
  for (const auto& [path, arguments] : std::vector<std::pair<std::string, std::string>>{
           {"/api/v1/nics", "nic list"}, {"/api/v1/plan", "plan show"}, {"/api/v1/jobs", "jobs"}, {"/api/v1/config", "config show"}}) {
    // Between the two something may have changed.
    EXPECT_TRUE(WaitUntil([&] { return WithoutSince(BodyOf(Get(path))) == WithoutSince(Ctl(arguments)); }, 10 * kNanosPerSecond))
        << path << Get(path) << Ctl(arguments);
  }
  HttpClient stream(port_);
  stream.Send("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  stream.Until("\r\n\r\n");
  EXPECT_THAT(stream.Until("\n\n"), HasSubstr("\"kind\":\"daemon-started\""));
  ASSERT_EQ(Act(0, "n0", "rail1", v1::DRAIN), "");
  std::string event;
  for (int i = 0; i < 100 && event.find("\"action\":\"drain\"") == std::string::npos; ++i) event = stream.Until("\n\n");
  EXPECT_THAT(event, HasSubstr("\"action\":\"drain\""));
}

TEST_F(R2ccdHttpTest, MetricsAreTrueAndCostLittle) {
  StartDaemon(0);
  ASSERT_TRUE(WaitUntil([&] { return Get("/metrics").find("r2cc_nic_state{nic=\"rail0\"") != std::string::npos; })) << Get("/metrics");
  auto plugin = Attach(0);
  EXPECT_EQ(Act(0, "n0", "rail1", v1::DRAIN), "");
  EXPECT_TRUE(WaitUntil([&] { return Get("/metrics").find("state=\"DRAINED\"} 1\n") != std::string::npos; }));
  const std::string metrics = BodyOf(Get("/metrics"));
  for (const char* const line : {"r2cc_node_info{node=\"n0\"} 1\n", "r2cc_jobs_attached 1\n", "r2cc_job_processes{job_name=\"test\"} 1\n",
                                 "r2cc_operator_actions_total{action=\"drain\"} 1\n", "r2cc_insecure 1\n", "r2cc_store_connected 1\n",
                                 "r2cc_peers{state=\"lost\"} 1\n", "r2cc_plan_refused 0\n"})
    EXPECT_THAT(metrics, HasSubstr(line));
  std::vector<Nanos> took;
  HttpClient client(port_);
  for (int i = 0; i < 50; ++i) {
    const Nanos begin = Now();
    client.Send("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    ASSERT_THAT(client.Response(), StartsWith("HTTP/1.1 200"));
    took.push_back(Now() - begin);
    // Older than what is handed out again, so that the core is asked each time.
    WaitUntil([&] { return Now() - begin > 120 * kNanosPerMs; });
  }
  std::sort(took.begin(), took.end());
  std::printf("a scrape: median %.2f ms, longest %.2f ms, %zu bytes\n", static_cast<double>(took[took.size() / 2]) / 1e6,
              static_cast<double>(took.back()) / 1e6, metrics.size());
}

// A scraper that is set up wrongly: it is answered, and the core does not notice.
TEST_F(R2ccdHttpTest, AScrapeEveryTenMillisecondsCostsTheCoreLittle) {
  StartDaemon(0);
  ASSERT_TRUE(WaitUntil([&] { return Get("/metrics").starts_with("HTTP/1.1 200"); }));
  const auto core_ticks = [&] {
    const std::string pid = std::to_string(daemons_[0]->pid());
    const std::string stat = ReadFile("/proc/" + pid + "/task/" + pid + "/stat");
    std::istringstream fields(stat.substr(stat.rfind(')') + 2));
    std::string skipped;
    for (int i = 0; i < 11; ++i) fields >> skipped;
    int64_t user = 0, system = 0;
    fields >> user >> system;
    return user + system;
  };
  constexpr Nanos kFor = 5 * kNanosPerSecond;
  const int64_t before = core_ticks();
  const Nanos begin = Now();
  HttpClient client(port_);
  int answered = 0, asked = 0;
  for (; Now() - begin < kFor; ++asked) {
    client.Send("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    answered += client.Response().starts_with("HTTP/1.1 200");
    WaitUntil([&] { return Now() - begin >= (asked + 1) * 10 * kNanosPerMs; });
  }
  EXPECT_EQ(answered, asked);
  const double share = static_cast<double>(core_ticks() - before) / static_cast<double>(sysconf(_SC_CLK_TCK)) /
                       (static_cast<double>(Now() - begin) / kNanosPerSecond);
  std::printf("%d scrapes; the core's thread took %.1f %% of a processor\n", asked, 100 * share);
  EXPECT_LT(share, 0.05);
  EXPECT_NE(Get("/healthz").find("ok: r2ccd"), std::string::npos);
}

TEST_F(R2ccdHttpTest, APortThatIsTakenIsAnAlarmUntilItIsFree) {
  StartDaemon(0);
  ASSERT_TRUE(WaitUntil([&] { return Get("/healthz").starts_with("HTTP/1.1 200"); }));
  StartDaemon(1);
  const auto alarmed = [&] {
    const v1::StatusReply status = Status(1);
    return std::any_of(status.alarms().begin(), status.alarms().end(),
                       [](const std::string& alarm) { return alarm.find("no metrics and no health over HTTP") != std::string::npos; });
  };
  EXPECT_TRUE(WaitUntil(alarmed)) << Status(1).DebugString();
  daemons_[0].reset();
  EXPECT_TRUE(WaitUntil([&] { return !alarmed(); }));
  EXPECT_THAT(Get("/healthz"), HasSubstr("r2ccd of node n1"));
}

TEST_F(R2ccdHttpTest, AnAddressThatOthersReachNeedsTlsOrInsecure) {
  trust_ = "";
  nodes_ = 0;
  std::ofstream(ConfigFile(0)) << "node: \"n0\"\nhttp { listen: \"0.0.0.0:0\" }\n";
  for (const std::vector<std::string>& more : {std::vector<std::string>{"--check_config"}, std::vector<std::string>{}}) {
    std::vector<std::string> arguments = Arguments(0);
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::string output;
    EXPECT_EQ(Run(arguments, &output), 1);
    EXPECT_THAT(output, HasSubstr("n0.conf:2: http.listen: 0.0.0.0 is not loopback: it needs tls"));
    EXPECT_EQ(std::count(output.begin(), output.end(), '\n'), 1) << output;
  }
}

TEST_F(R2ccdHttpTest, BeyondLoopbackItSpeaksTlsAndAsksForAnOperator) {
  const std::string authority = folder_ + "/ca";
  for (const char* const arguments : {"init", "issue n0", "issue alice --operator"})
    ASSERT_EQ(std::system(("client/r2ccctl certs " + std::string(arguments) + " --dir " + authority + " > /dev/null").c_str()), 0)
        << arguments;
  nodes_ = 1;
  trust_ = "tls { directory: \"" + authority + "/n0\" }\n";
  http_ = "listen: \"0.0.0.0:" + std::to_string(port_) + "\"";
  WriteConfig(0, "grants { roles: VIEW roles: DRILL operators: \"alice\" }\n");
  StartDaemon(0);
  std::string method = "GET";
  // `who`: a directory of the authority's; empty: shows nothing.
  const auto get = [&](const std::string& path, const std::string& who, const std::string& file) {
    const std::string out = folder_ + "/tls.out";
    const std::string shown =
        who.empty() ? "" : " -cert " + authority + "/" + who + "/" + file + ".crt -key " + authority + "/" + who + "/" + file + ".key";
    EXPECT_EQ(
        std::system(("printf '" + method + " " + path +
                     " HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' | openssl s_client -quiet -connect 127.0.0.1:" +
                     std::to_string(port_) + " -CAfile " + authority + "/ca.crt" + shown + " > " + out + " 2> /dev/null; true")
                        .c_str()),
        0);
    return ReadFile(out);
  };
  ASSERT_TRUE(WaitUntil([&] { return get("/healthz", "", "").starts_with("HTTP/1.1 200"); })) << get("/healthz", "", "");
  EXPECT_THAT(get("/metrics", "", ""), testing::AllOf(StartsWith("HTTP/1.1 401"), HasSubstr("you show no certificate")));
  EXPECT_THAT(get("/metrics", "alice", "operator"), testing::AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("r2cc_insecure 0\n")));
  EXPECT_THAT(get("/metrics", "n0", "node"), testing::AllOf(StartsWith("HTTP/1.1 403"), HasSubstr("operator's certificate")));
  // A drill, as the page sends it. The request line and the header fields go where get() has a path.
  const auto drill = [&](const std::string& action, const std::string& origin) {
    return "/api/v1/drill?node=n0&nic=rail1&action=" + action + " HTTP/1.1\\r\\nOrigin: " + origin +
           "\\r\\nContent-Length: 0\\r\\nR2CC-Confirm: n0/rail1\\r\\nX: ";
  };
  method = "POST";
  EXPECT_THAT(get(drill("fail", "https://localhost"), "", ""), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(get(drill("fail", "https://evil.com"), "alice", "operator"), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(get(drill("fail", "https://localhost"), "n0", "node"), StartsWith("HTTP/1.1 403"));
  EXPECT_TRUE(Events(0, "drill").empty());
  EXPECT_THAT(get(drill("fail", "https://localhost"), "alice", "operator"),
              testing::AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("\"drill_failed\": true")));
  EXPECT_THAT(get(drill("restore", "https://localhost"), "alice", "operator"),
              testing::AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("\"drill_failed\": false")));
  method = "GET";
  EXPECT_THAT(get("/api/v1/who", "alice", "operator"), testing::AllOf(HasSubstr("\"name\": \"alice\""), HasSubstr("\"may_drill\": true")));
  // Somebody without a certificate asks without end, over several connections.
  const std::string flood = folder_ + "/flood";
  std::ofstream(flood) << "while [ -e " + flood
                       << R"( ]; do printf 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n%.0s' $(seq 500); done |)"
                       << " timeout 60 openssl s_client -quiet -connect 127.0.0.1:" << port_ << " -CAfile " << authority << "/ca.crt";
  for (const char* client : {"1", "2", "3"})
    ASSERT_EQ(std::system(("sh " + flood + " > " + flood + client + " 2> /dev/null &").c_str()), 0);
  for (const char* client : {"1", "2", "3"})
    EXPECT_TRUE(WaitUntil([&] { return ReadFile(flood + client).find("HTTP/1.1 429") != std::string::npos; })) << client;
  for (int i = 0; i < 5; ++i) EXPECT_THAT(get("/metrics", "alice", "operator"), StartsWith("HTTP/1.1 200"));
  std::remove(flood.c_str());
  HttpClient clear(port_);
  clear.Send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(clear.Ended()) << "nothing is sent in the clear";
}

}  // namespace
}  // namespace r2cc::daemon
