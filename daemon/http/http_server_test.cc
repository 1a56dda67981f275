#include "daemon/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/http/fake_backend.h"
#include "daemon/http/http_client_rig.h"
#include "daemon/http/process_facts.h"

namespace r2cc::daemon {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class HttpServerTest : public testing::Test {
 protected:
  HttpServerTest() {
    backend_.status.set_node("n0");
    backend_.status.mutable_plan_epoch()->set_counter(7);
    for (const char* const node : {"n0", "n1", "n2"}) {
      v1::NodeView* const view = backend_.nics.add_nodes();
      view->set_node(node);
      v1::NicView* const nic = view->add_nics();
      nic->set_name("rail0");
      nic->set_state(v1::HEALTHY);
      nic->set_operator_weight_permille(1000);
    }
    backend_.metrics.node = "n0";
    server_.emplace(HttpServer::Parts{&backend_, &refusals_, nullptr, {"n0"}, [this](const std::string& alarm) { alarm_ = alarm; }},
                    "127.0.0.1:0");
  }
  std::string Get(const std::string& target, const std::string& more = "") {
    HttpClient client(server_->port());
    client.Send(absl::StrCat("GET ", target, " HTTP/1.1\r\nHost: n0\r\n", more, "\r\n"));
    return client.Response();
  }
  uint64_t Refused(const std::string& reason) const {
    uint64_t times = 0;
    for (const v1::Refusal& refusal : refusals_.List())
      if (refusal.listener() == "http" && refusal.reason() == reason) times += refusal.times();
    return times;
  }

  FakeBackend backend_;
  Refusals refusals_{[] { return int64_t{1}; }};
  std::string alarm_;
  std::optional<HttpServer> server_;
};

TEST_F(HttpServerTest, ServesHealthMetricsAndDocuments) {
  EXPECT_THAT(Get("/healthz"), HasSubstr("ok: r2ccd of node n0 serves plan 7\n"));
  EXPECT_THAT(Get("/readyz"), AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("ready: n0 has 1 of 1 rails")));
  EXPECT_THAT(Get("/readyz?min_rails=2"), AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("not ready: n0 has 1 of 1 rails, needs 2")));
  EXPECT_THAT(Get("/api/v1/ready"), AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("\"rails_usable\": 1")));
  EXPECT_THAT(Get("/metrics"), AllOf(HasSubstr("text/plain; version=0.0.4"), HasSubstr("r2cc_node_info{node=\"n0\"} 1\n")));
  EXPECT_THAT(Get("/api/v1/status"), HasSubstr("\"node\": \"n0\""));
  EXPECT_THAT(Get("/"), AllOf(HasSubstr("text/html"), HasSubstr("script-src 'self'"), HasSubstr("/api/v1/events")));
  EXPECT_THAT(Get("/page/main.js"), AllOf(HasSubstr("text/javascript"), HasSubstr("trusted-types 'none'")));
  EXPECT_THAT(Get("/api/v1/map"), AllOf(HasSubstr(R"("node":"n0","release":)"), HasSubstr(R"({"node":"n2","word":)"),
                                        HasSubstr(R"("healthy":["rail0"])"), HasSubstr("default-src 'none'; frame-ancestors")));
  EXPECT_THAT(Get("/api/v1/map?node=n1"), HasSubstr(R"("node":"n1")"));
  EXPECT_THAT(Get("/api/v1/nic/why?node=n0&nic=rail7"), HasSubstr("\"verdict_text\": \"of n0/rail7\""));
  EXPECT_THAT(Get("/nothing"), StartsWith("HTTP/1.1 404"));
}

TEST_F(HttpServerTest, JoinsThePagesOfALongAnswer) {
  const std::string nics = Get("/api/v1/nics");
  for (const char* const node : {"\"n0\"", "\"n1\"", "\"n2\""}) EXPECT_THAT(nics, HasSubstr(node));
  EXPECT_THAT(nics, HasSubstr("\"next_after\": \"\""));
  for (const char* const job : {"a", "b", "c"}) backend_.jobs.add_jobs()->set_job(job);
  const std::string jobs = Get("/api/v1/jobs");
  for (const char* const job : {"\"a\"", "\"b\"", "\"c\""}) EXPECT_THAT(jobs, HasSubstr(job));
}

TEST_F(HttpServerTest, AnAnswerThatIsTooLargeNamesTheWayOut) {
  for (v1::NodeView& node : *backend_.nics.mutable_nodes()) node.mutable_nics(0)->set_reason(std::string(7 << 20, 'x'));
  EXPECT_THAT(Get("/api/v1/nics"), AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("ask for a part of it, with ?node=GLOB")));
}

TEST_F(HttpServerTest, AConnectionAsksAgainAndAgain) {
  HttpClient client(server_->port());
  for (int i = 0; i < 3; ++i) {
    client.Send("GET /healthz HTTP/1.1\r\nHost: n0\r\n\r\n");
    EXPECT_THAT(client.Response(), HasSubstr("ok: r2ccd"));
  }
  // Two at once, and the last one.
  client.Send("HEAD /healthz HTTP/1.1\r\nHost: n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: n0\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(client.Until("\r\n\r\n"), HasSubstr("Content-Length"));
  EXPECT_THAT(client.Response(), HasSubstr("Connection: close"));
  EXPECT_TRUE(client.Ended());
}

TEST_F(HttpServerTest, AClientMayEndItsDirectionAndGetsTheAnswer) {
  HttpClient client(server_->port());
  client.Send("GET /healthz HTTP/1.1\r\nHost: n0\r\n\r\n");
  shutdown(client.fd(), SHUT_WR);
  EXPECT_THAT(client.Response(), HasSubstr("ok: r2ccd"));
  EXPECT_TRUE(client.Ended());
}

TEST_F(HttpServerTest, GarbageIsRefusedAndCounted) {
  for (const char* const bytes : {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET\r\n\r\n",
                                  "POST /api/v1/nics HTTP/1.1\r\nHost: n0\r\nContent-Length: 3\r\n\r\nabc"}) {
    HttpClient client(server_->port());
    client.Send(bytes);
    shutdown(client.fd(), SHUT_WR);
    EXPECT_TRUE(client.Ended());
  }
  EXPECT_GE(Refused("garbage"), 3u);
  HttpClient evil(server_->port());
  evil.Send("GET /metrics HTTP/1.1\r\nHost: evil.com\r\n\r\n");
  EXPECT_THAT(evil.Response(), StartsWith("HTTP/1.1 421"));
  EXPECT_EQ(Refused("host"), 1u);
  EXPECT_THAT(Get("/metrics", "Origin: http://evil.com\r\n"), StartsWith("HTTP/1.1 403"));
  EXPECT_EQ(Refused("origin"), 1u);
  EXPECT_THAT(Get("/healthz"), HasSubstr("ok: r2ccd")) << "others are served";
}

TEST_F(HttpServerTest, WithoutTheRoleViewThereIsHealthAlone) {
  backend_.view_allowed = false;
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Get("/readyz"), StartsWith("HTTP/1.1 200"));
  for (const char* const path :
       {"/metrics", "/api/v1/status", "/api/v1/events", "/api/v1/map", "/api/v1/who", "/api/v1/nic/why?node=n0&nic=r"})
    EXPECT_THAT(Get(path), StartsWith("HTTP/1.1 403")) << path;
  EXPECT_EQ(Refused("role"), 6u);
}

TEST_F(HttpServerTest, WithoutACertificateThereAreNoDrills) {
  EXPECT_THAT(Get("/api/v1/who"), AllOf(HasSubstr("\"may_drill\": false"), HasSubstr("needs TLS and the certificate")));
  HttpClient client(server_->port());
  client.Send(
      "POST /api/v1/drill?action=fail&node=n0&nic=rail0 HTTP/1.1\r\nHost: n0\r\nOrigin: http://n0\r\nR2CC-Confirm: n0/rail0\r\n"
      "Content-Length: 0\r\n\r\n");
  EXPECT_THAT(client.Response(), AllOf(StartsWith("HTTP/1.1 403"), HasSubstr("needs TLS and the certificate of an operator")));
}

TEST_F(HttpServerTest, ACoreThatDoesNotAnswerIsReported) {
  backend_.stuck = true;
  EXPECT_THAT(Get("/healthz"), AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("core does not answer")));
}

TEST_F(HttpServerTest, FrequentScrapesCostTheCoreLittle) {
  HttpClient client(server_->port());
  const Nanos begin = SteadyClock().Now();
  for (int i = 0; i < 100; ++i) {
    client.Send("GET /metrics HTTP/1.1\r\nHost: n0\r\n\r\n");
    ASSERT_THAT(client.Response(), HasSubstr("r2cc_node_info"));
  }
  const Nanos took = SteadyClock().Now() - begin;
  EXPECT_LE(backend_.asked_for_metrics, 2 + took / HttpAnswers::kMetricsFreshFor);
}

TEST_F(HttpServerTest, MoreThanSomeRequestsASecondAreRefused) {
  // Enough at once that the server would need 8 s to be entitled to answer all.
  constexpr int kAtOnce = HttpServer::kRequestsBurst + 8 * HttpServer::kRequestsPerSecond;
  std::string requests;
  for (int i = 0; i < kAtOnce; ++i) requests += "GET / HTTP/1.1\r\nHost: n0\r\n\r\n";
  HttpClient client(server_->port());
  client.Send(requests);
  uint64_t refused = 0;
  for (int i = 0; i < kAtOnce; ++i) refused += client.Response().starts_with("HTTP/1.1 429") ? 1 : 0;
  EXPECT_GT(refused, 0u);
  EXPECT_EQ(Refused("too-often"), refused);
}

TEST_F(HttpServerTest, EventsComeAsTheyHappenAndResume) {
  const auto append = [this](const std::string& text) {
    v1::Event event;
    event.set_kind("state");
    event.set_message(text);
    return backend_.events().Append(event);
  };
  append("one");
  HttpClient client(server_->port());
  client.Send("GET /api/v1/events HTTP/1.1\r\nHost: n0\r\n\r\n");
  EXPECT_THAT(client.Until("\r\n\r\n"), HasSubstr("text/event-stream"));
  EXPECT_THAT(client.Until("\n\n"), AllOf(StartsWith("id: 1-1\ndata: {"), HasSubstr("\"message\":\"one\"")));
  append("two");
  EXPECT_THAT(client.Until("\n\n"), AllOf(StartsWith("id: 1-2\n"), HasSubstr("two")));
  append("three");
  HttpClient again(server_->port());
  again.Send("GET /api/v1/events HTTP/1.1\r\nHost: n0\r\nLast-Event-ID: 1-2\r\n\r\n");
  again.Until("\r\n\r\n");
  EXPECT_THAT(again.Until("\n\n"), StartsWith("id: 1-3\n"));
  // All events of another instance are news.
  EXPECT_THAT(Get("/api/v1/events?follow=0", "Last-Event-ID: 9-2\r\n"), StartsWith("HTTP/1.1 200"));
  HttpClient other(server_->port());
  other.Send("GET /api/v1/events?follow=0 HTTP/1.1\r\nHost: n0\r\nLast-Event-ID: 9-2\r\n\r\n");
  other.Until("\r\n\r\n");
  EXPECT_THAT(other.Until("\n\n"), StartsWith("id: 1-1\n"));
  EXPECT_TRUE(other.Ended());
}

TEST_F(HttpServerTest, SomeClientsFollowEventsAndNoMore) {
  std::vector<std::unique_ptr<HttpClient>> streams;
  for (size_t i = 0; i < HttpServer::kStreamsMax; ++i) {
    streams.push_back(std::make_unique<HttpClient>(server_->port()));
    streams.back()->Send("GET /api/v1/events HTTP/1.1\r\nHost: n0\r\n\r\n");
    EXPECT_THAT(streams.back()->Until("\r\n\r\n"), StartsWith("HTTP/1.1 200"));
  }
  EXPECT_THAT(Get("/api/v1/events"), StartsWith("HTTP/1.1 503"));
  EXPECT_EQ(Refused("too-many-streams"), 1u);
  streams.clear();
  for (int i = 0; i < 1000; ++i)
    if (Get("/api/v1/events?follow=0").starts_with("HTTP/1.1 200")) return;
  ADD_FAILURE() << "a place is not free again";
}

TEST_F(HttpServerTest, AReaderThatDoesNotReadIsCutOffAndCounted) {
  v1::Event event;
  event.set_kind("state");
  event.set_message(std::string(4000, 'x'));
  for (int i = 0; i < 2000; ++i) backend_.events().Append(event);
  HttpClient slow(server_->port(), 4096);
  slow.Send("GET /api/v1/events HTTP/1.1\r\nHost: n0\r\n\r\n");
  const Nanos end = SteadyClock().Now() + HttpServer::kStalledFor + 30 * kNanosPerSecond;
  pollfd wait{slow.fd(), POLLRDHUP, 0};
  while (Refused("slow-reader") == 0 && SteadyClock().Now() < end) poll(&wait, 1, 200);
  EXPECT_EQ(Refused("slow-reader"), 1u);
  EXPECT_THAT(Get("/healthz"), HasSubstr("ok: r2ccd"));
}

TEST_F(HttpServerTest, TenThousandConnectionsAreRefusedBeyondTheBound) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  const uint64_t before = ReadProcessFacts().resident_bytes;
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 10'000; ++i) {
    clients.push_back(std::make_unique<HttpClient>(server_->port()));
    // Both ends are this process's: the older half goes.
    if (clients.size() > 400) clients.erase(clients.begin(), clients.begin() + 200);
  }
  EXPECT_THAT(Get("/healthz"), HasSubstr("ok: r2ccd"));
  EXPECT_GE(Refused("too-many"), 1u);
  EXPECT_LE(ReadProcessFacts().open_descriptors, clients.size() + HttpServer::kConnectionsMax + 64);
  EXPECT_LE(ReadProcessFacts().resident_bytes, before + (16 << 20));
}

TEST_F(HttpServerTest, APortThatIsTakenIsAnAlarmAndTriedAgain) {
  const std::string taken = absl::StrCat("127.0.0.1:", server_->port());
  std::string alarm;
  HttpServer second({&backend_, &refusals_, nullptr, {}, [&alarm](const std::string& text) { alarm = text; }}, taken);
  EXPECT_EQ(second.port(), 0);
  EXPECT_THAT(alarm, AllOf(HasSubstr("cannot listen on " + taken), HasSubstr("set http { listen }")));
  EXPECT_EQ(alarm_, "");
}

// Each waits for the one before, so that no more than one is in memory while it is made.
TEST_F(HttpServerTest, DocumentsAreMadeInTurnAndABoundedNumberWaits) {
  backend_.stuck = true;
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(std::make_unique<HttpClient>(server_->port()));
    clients.back()->Send("GET /api/v1/nics HTTP/1.1\r\nHost: n0\r\n\r\n");
  }
  for (const auto& client : clients) EXPECT_THAT(client->Response(), StartsWith("HTTP/1.1 503")) << "the core does not answer";
  EXPECT_EQ(backend_.asked_for_nics, 1);
}

TEST_F(HttpServerTest, AnswersThatNobodyTakesAreBounded) {
  for (v1::NodeView& node : *backend_.nics.mutable_nodes()) node.mutable_nics(0)->set_reason(std::string(300'000, 'x'));
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 60; ++i) {
    clients.push_back(std::make_unique<HttpClient>(server_->port(), 4096));
    clients.back()->Send("GET /api/v1/nics HTTP/1.1\r\nHost: n0\r\n\r\n");
  }
  const Nanos end = SteadyClock().Now() + 20 * kNanosPerSecond;
  while (Refused("too-many") == 0 && SteadyClock().Now() < end) Get("/healthz");
  EXPECT_GT(Refused("too-many"), 0u);
  EXPECT_THAT(Get("/metrics"), HasSubstr("r2cc_node_info")) << "what is small is answered";
}

}  // namespace
}  // namespace r2cc::daemon
