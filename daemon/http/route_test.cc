#include "daemon/http/route.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace r2cc::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const HostNames kNames = {"n0", "*.Example.org"};

std::variant<Route, HttpRefusal> Get(const std::string& target, const std::string& host = "127.0.0.1:9460", const std::string& origin = "",
                                     const std::string& last_event_id = "") {
  return RouteOf({.method = "GET", .target = target, .host = host, .origin = origin, .last_event_id = last_event_id}, kNames);
}
int StatusOf(const std::variant<Route, HttpRefusal>& routed) {
  const auto* const refusal = std::get_if<HttpRefusal>(&routed);
  return refusal == nullptr ? 200 : refusal->status;
}
template <typename Kind>
Kind As(const std::variant<Route, HttpRefusal>& routed) {
  EXPECT_EQ(StatusOf(routed), 200);
  return std::get<Kind>(std::get<Route>(routed));
}

TEST(RouteTest, EachPathIsACommandOfR2ccctl) {
  As<HealthzRoute>(Get("/healthz"));
  As<MetricsRoute>(Get("/metrics"));
  As<MetricsRoute>(Get("/metrics?collect%5B%5D=a"));
  EXPECT_EQ(As<PageRoute>(Get("/")).file->type, "text/html; charset=utf-8");
  EXPECT_EQ(As<ReadyzRoute>(Get("/readyz")).rails_min, 1u);
  EXPECT_EQ(As<ReadyzRoute>(Get("/readyz?min_rails=3")).rails_min, 3u);
  EXPECT_TRUE(As<ReadyzRoute>(Get("/api/v1/ready")).json);
  EXPECT_EQ(As<v1::StatusRequest>(Get("/api/v1/status?bad=1&node=rack3-%2A")).node_glob(), "rack3-*");
  EXPECT_THAT(As<v1::ListNicsRequest>(Get("/api/v1/nics?state=failed&state=SUSPECT")).states(), ElementsAre(v1::FAILED, v1::SUSPECT));
  const auto jobs = As<v1::ListJobsRequest>(Get("/api/v1/jobs?ended=1&uid=1000&job=a+b"));
  EXPECT_TRUE(jobs.ended());
  EXPECT_EQ(jobs.uid(), 1000u);
  EXPECT_EQ(jobs.job_glob(), "a b");
  As<v1::GetPlanRequest>(Get("/api/v1/plan"));
  As<v1::ExplainPlanRequest>(Get("/api/v1/plan/why"));
  As<v1::ConfigRequest>(Get("/api/v1/config"));
  const auto events = As<v1::EventsRequest>(Get("/api/v1/events?last=5&kind=nic-state&nic=rail0"));
  EXPECT_TRUE(events.follow());
  EXPECT_EQ(events.last(), 5u);
  EXPECT_THAT(events.kinds(), ElementsAre("nic-state"));
}

TEST(RouteTest, ThePageHasFilesAndAsksForTheMapAndForAVerdict) {
  EXPECT_EQ(As<PageRoute>(Get("/?from=mail")).file->path, "/");
  EXPECT_EQ(As<PageRoute>(Get("/page/main.js")).file->type, "text/javascript; charset=utf-8");
  EXPECT_EQ(StatusOf(Get("/page/../page/main.js")), 404);
  EXPECT_EQ(As<MapRoute>(Get("/api/v1/map?node=n%2A")).node_glob, "n*");
  const auto why = As<v1::ExplainNicRequest>(Get("/api/v1/nic/why?node=n1&nic=rail0"));
  EXPECT_EQ(why.node(), "n1");
  EXPECT_EQ(why.nic(), "rail0");
  EXPECT_EQ(StatusOf(Get("/api/v1/nic/why?node=n1")), 400);
  As<WhoRoute>(Get("/api/v1/who"));
}

std::variant<Route, HttpRefusal> Drill(const std::string& query, const std::string& origin, const std::string& confirm,
                                       const std::string& method = "POST") {
  return RouteOf({.method = method, .target = "/api/v1/drill?" + query, .host = "n0:1", .origin = origin, .confirm = confirm}, kNames);
}

TEST(RouteTest, ADrillIsAPostOfThisDaemonsPageWithTheNameThatAPersonTyped) {
  const std::string fail = "action=fail&node=n0&nic=rail0&seconds=60", own = "http://n0:1";
  const auto drill = As<v1::NicActionRequest>(Drill(fail, own, "n0/rail0"));
  EXPECT_EQ(drill.action(), v1::FAIL);
  EXPECT_EQ(drill.node(), "n0");
  EXPECT_EQ(drill.nic(), "rail0");
  EXPECT_EQ(drill.drill_ns(), 60'000'000'000);
  EXPECT_EQ(As<v1::NicActionRequest>(Drill("action=restore&node=n0&nic=rail0", own, "n0/rail0")).action(), v1::RESTORE);
  EXPECT_EQ(StatusOf(Drill(fail, "", "n0/rail0")), 403) << "no page sends it";
  EXPECT_EQ(StatusOf(Drill(fail, "http://evil.com", "n0/rail0")), 403);
  EXPECT_EQ(StatusOf(Drill(fail, own, "")), 400) << "nobody typed a name";
  EXPECT_EQ(StatusOf(Drill(fail, own, "n0/rail1")), 400);
  EXPECT_EQ(StatusOf(Drill(fail, own, "n0/rail0", "GET")), 405);
  EXPECT_EQ(StatusOf(RouteOf({.method = "POST", .target = "/api/v1/status", .host = "n0", .origin = "http://n0"}, kNames)), 405);
  for (const char* const wrong : {"action=drain&node=n0&nic=rail0", "action=fail&node=n0", "node=n0&nic=rail0",
                                  "action=fail&node=n0&nic=rail0&seconds=0", "action=fail&node=n0&nic=rail0&seconds=86401"})
    EXPECT_EQ(StatusOf(Drill(wrong, own, "n0/rail0")), 400) << wrong;
}

TEST(RouteTest, AStreamResumesBehindItsLastEvent) {
  const auto events = As<v1::EventsRequest>(Get("/api/v1/events?last=5", "n0", "", "7-9"));
  EXPECT_EQ(events.after_instance(), 7u);
  EXPECT_EQ(events.after_sequence(), 9u);
  EXPECT_EQ(events.last(), 0u);
  EXPECT_EQ(StatusOf(Get("/api/v1/events", "n0", "", "garbage")), 400);
}

TEST(RouteTest, AWebPageThatMadeItsNameLeadHereIsRefused) {
  for (const char* const host :
       {"127.0.0.1", "127.0.0.1:9460", "[::1]:9460", "10.9.0.1:9460", "localhost:9460", "n0", "N0:9460", "n0.:80", "gpu7.example.org:9460"})
    EXPECT_EQ(StatusOf(Get("/metrics", host)), 200) << host;
  for (const char* const host : {"evil.com", "n0.evil.com:9460", "example.org", "n1", "127.0.0.1.evil.com"}) {
    const auto routed = Get("/metrics", host);
    EXPECT_EQ(StatusOf(routed), 421) << host;
    EXPECT_EQ(std::get<HttpRefusal>(routed).reason, "host");
  }
  for (const char* const host : {"", "[::1", "n0:x", ":9460", "n0:80:90"}) EXPECT_EQ(StatusOf(Get("/metrics", host)), 400) << host;
}

TEST(RouteTest, APageOfAnotherOriginIsRefused) {
  EXPECT_EQ(StatusOf(Get("/api/v1/nics", "n0:9460", "http://n0:9460")), 200);
  EXPECT_EQ(StatusOf(Get("/api/v1/nics", "n0:9460", "https://N0:9460")), 200);
  for (const char* const origin : {"null", "http://evil.com", "http://n0", "http://n0:9461", "n0:9460", "http://127.0.0.1:9460"})
    EXPECT_EQ(StatusOf(Get("/api/v1/nics", "n0:9460", origin)), 403) << origin;
}

TEST(RouteTest, NothingIsChangedByHttp) {
  for (const char* const method : {"POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "TRACE", "get", ""})
    EXPECT_EQ(StatusOf(RouteOf({.method = method, .target = "/api/v1/nics", .host = "n0"}, kNames)), 405) << method;
}

TEST(RouteTest, UnknownQueriesAreNamed) {
  const auto unknown = Get("/api/v1/status?stats=1");
  EXPECT_EQ(StatusOf(unknown), 400);
  EXPECT_THAT(std::get<HttpRefusal>(unknown).text, HasSubstr("bad, node"));
  for (const char* const target :
       {"/api/v1/status?bad=yes", "/api/v1/nics?state=ILL", "/api/v1/nics?state=NIC_STATE_UNSPECIFIED", "/api/v1/jobs?uid=-1",
        "/api/v1/events?kind=typo", "/api/v1/events?last=1e9", "/readyz?min_rails=0", "/api/v1/status?node=", "/api/v1/status?node=%2",
        "/api/v1/status?node=%zz", "/api/v1/plan?x", "/healthz?x=1"})
    EXPECT_EQ(StatusOf(Get(target)), 400) << target;
  EXPECT_EQ(StatusOf(Get("/api/v1/status?node=" + std::string(300, 'a'))), 400);
  std::string many = "/api/v1/events?";
  for (int i = 0; i < 40; ++i) many += "kind=state&";
  EXPECT_EQ(StatusOf(Get(many)), 400);
  for (const char* const target : {"/metrics/", "/api/v1", "/api/v1/../status", "//metrics", "", "*", "http://n0/metrics", "/Metrics"})
    EXPECT_EQ(StatusOf(Get(target)), 404) << target;
}

TEST(RouteTest, GarbageAtEveryPathIsAnswered) {
  std::mt19937 random(3);
  for (const char* const path : {"/metrics", "/healthz", "/readyz", "/api/v1/status", "/api/v1/nics", "/api/v1/jobs", "/api/v1/plan",
                                 "/api/v1/plan/why", "/api/v1/config", "/api/v1/events", "/"})
    for (int round = 0; round < 500; ++round) {
      std::string target = std::string(path) + (round % 2 == 0 ? "?" : "");
      for (uint32_t left = random() % 40; left > 0; --left) target += static_cast<char>(random());
      const int status = StatusOf(Get(target, "n0", "", round % 3 == 0 ? target : ""));
      EXPECT_TRUE(status == 200 || status == 400 || status == 404) << status;
    }
}

TEST(RouteTest, WhetherADaemonRunsIsNoSecret) {
  EXPECT_TRUE(IsOpen(As<HealthzRoute>(Get("/healthz"))));
  EXPECT_TRUE(IsOpen(As<ReadyzRoute>(Get("/readyz"))));
  EXPECT_FALSE(IsOpen(As<MetricsRoute>(Get("/metrics"))));
  EXPECT_FALSE(IsOpen(As<v1::StatusRequest>(Get("/api/v1/status"))));
}

}  // namespace
}  // namespace r2cc::daemon
