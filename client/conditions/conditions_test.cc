#include "client/conditions/conditions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "client/conditions/fake_kubernetes_api.h"

namespace r2cc::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kNow = 1'764'237'600'000'000'000;
const NodeConditions::Write kDegraded = {
    .node = "n0", .condition = {ConditionStatus::kTrue, "RailDegraded", "rail1 FAILED: \"x\""}, .turned = true};

std::vector<std::string> Asked(const FakeKubernetesApi& api) {
  std::vector<std::string> asked;
  for (const auto& request : api.asked) asked.push_back(request.method + " " + request.path);
  return asked;
}

TEST(WriteCondition, ATurnIsAPatchAndAnEvent) {
  FakeKubernetesApi api;
  ASSERT_TRUE(WriteCondition(kDegraded, kNow, &api).ok());
  EXPECT_THAT(Asked(api), ElementsAre("PATCH /api/v1/nodes/n0/status", "POST /api/v1/namespaces/default/events"));
  EXPECT_EQ(api.asked[0].content_type, "application/strategic-merge-patch+json");
  EXPECT_THAT(api.asked[0].body, HasSubstr(R"("lastTransitionTime":"2025-11-27T10:00:00Z")"));
  EXPECT_THAT(api.asked[0].body, HasSubstr(R"(\"x\")"));
  EXPECT_THAT(api.asked[1].body, HasSubstr(R"("type":"Warning")"));
}

TEST(WriteCondition, AHeartbeatChangesNoTransition) {
  FakeKubernetesApi api;
  NodeConditions::Write write = kDegraded;
  write.turned = false;
  ASSERT_TRUE(WriteCondition(write, kNow, &api).ok());
  EXPECT_THAT(Asked(api), ElementsAre("PATCH /api/v1/nodes/n0/status"));
  EXPECT_THAT(api.asked[0].body, Not(HasSubstr("lastTransitionTime")));
}

TEST(WriteCondition, TheFirstOfALifeLooksAtWhatIsThere) {
  NodeConditions::Write write = kDegraded;
  write.turned = false;
  write.first = true;
  FakeKubernetesApi same;
  same.node = R"({"status":{"conditions":[{"type":"R2CCRailDegraded","status":"True"}]}})";
  ASSERT_TRUE(WriteCondition(write, kNow, &same).ok());
  EXPECT_THAT(Asked(same), ElementsAre("GET /api/v1/nodes/n0", "PATCH /api/v1/nodes/n0/status"));
  FakeKubernetesApi none;
  ASSERT_TRUE(WriteCondition(write, kNow, &none).ok());
  EXPECT_EQ(none.asked.size(), 3u) << "with an Event";
  write.condition.status = ConditionStatus::kFalse;
  FakeKubernetesApi well;
  ASSERT_TRUE(WriteCondition(write, kNow, &well).ok());
  EXPECT_EQ(well.asked.size(), 2u) << "that all is well is no news";
  EXPECT_THAT(well.asked[1].body, HasSubstr("lastTransitionTime"));
  FakeKubernetesApi garbage;
  garbage.node = "<html>";
  EXPECT_FALSE(WriteCondition(write, kNow, &garbage).ok());
}

TEST(FollowConditions, SaysOnceWhatFailsAndThatItWorksAgain) {
  FakeKubernetesApi api;
  api.status = absl::PermissionDeniedError("status 403");
  v1::NodeView node;
  node.set_node("n0");
  node.add_nics()->set_state(v1::HEALTHY);
  node.mutable_nics(0)->set_operator_weight_permille(1000);
  std::vector<std::string> lines;
  Nanos now = kNanosPerSecond;
  int looks = 0;
  FollowConditions({[&]() -> absl::StatusOr<std::vector<v1::NodeView>> {
                      if (looks == 0) return absl::UnavailableError("it is down");
                      return std::vector<v1::NodeView>{node};
                    },
                    &api, [] { return kNow; }, [&] { return now; }, [&](const std::string& line) { lines.push_back(line); },
                    [&](int milliseconds) {
                      now += milliseconds * kNanosPerMs;
                      if (++looks == 20) api.status = absl::OkStatus();
                      return looks < 40;
                    }});
  EXPECT_THAT(lines, ElementsAre(HasSubstr("no view of the cluster"), "the view: it works again",
                                 "conditions of nodes that have left are not looked for: status 403",
                                 "the condition of node n0 is not written: status 403", "n0: it works again"));
  EXPECT_LT(api.asked.size(), 10u) << "not at each look";
}

TEST(AdoptConditions, ReadsEachPage) {
  FakeKubernetesApi api;
  api.pages = {R"({"metadata":{"continue":"eyJ2_-="},"items":[{"metadata":{"name":"n0"},"status":{"conditions":[{"type":"Ready"}]}},{}]})",
               R"({"metadata":{},"items":[{"metadata":{"name":"n1"},"status":{"conditions":[{"type":"R2CCRailDegraded","status":"True",
                  "reason":"RailDegraded","message":"rail1 FAILED"}]}}]})"};
  NodeConditions conditions;
  ASSERT_TRUE(AdoptConditions(&api, 0, &conditions).ok());
  EXPECT_THAT(Asked(api), ElementsAre("GET /api/v1/nodes?limit=16", "GET /api/v1/nodes?limit=16&continue=eyJ2_-="));
  const auto writes = conditions.Look({}, NodeConditions::kGone);
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_EQ(writes[0].node, "n1");
}

TEST(AdoptConditions, AListThatIsNoneIsAnError) {
  for (const char* page : {"<html>", R"({"metadata":{"continue":"x HTTP/1.0\r\nX: y"},"items":[]})"}) {
    FakeKubernetesApi api;
    api.pages = {page};
    NodeConditions conditions;
    EXPECT_TRUE(absl::IsUnavailable(AdoptConditions(&api, 0, &conditions))) << page;
  }
}

// A node whose last condition was True left while r2cc-conditions did not run.
TEST(FollowConditions, ANodeThatLeftBeforeItsStartBecomesUnknown) {
  FakeKubernetesApi api;
  api.pages = {R"({"items":[{"metadata":{"name":"gone"},"status":{"conditions":[{"type":"R2CCRailDegraded","status":"True",
                  "reason":"RailDegraded","message":"rail1 FAILED"}]}}]})"};
  Nanos now = kNanosPerSecond;
  FollowConditions({[]() -> absl::StatusOr<std::vector<v1::NodeView>> { return std::vector<v1::NodeView>(); }, &api, [] { return kNow; },
                    [&] { return now; }, [](const std::string&) {},
                    [&](int milliseconds) {
                      now += milliseconds * kNanosPerMs;
                      return now < 2 * NodeConditions::kGone;
                    }});
  EXPECT_THAT(Asked(api),
              ElementsAre("GET /api/v1/nodes?limit=16", "PATCH /api/v1/nodes/gone/status", "POST /api/v1/namespaces/default/events"));
  EXPECT_THAT(api.asked[1].body, HasSubstr(R"("status":"Unknown")"));
}

TEST(ConnectKubernetes, AServerThatClosesAConnectionEndsNoProcess) {
  signal(SIGPIPE, SIG_DFL);
  const auto api = ConnectKubernetes("localhost:1", "/nowhere");
  EXPECT_TRUE(absl::IsUnavailable(api->Ask({"GET", "/api/v1/nodes/n0", "", ""}).status()));
  raise(SIGPIPE);
}

TEST(ParseAnswer, TakesWholeAnswersAlone) {
  EXPECT_EQ(*ParseAnswer("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}"), "{}");
  EXPECT_EQ(*ParseAnswer("HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\n{}more"), "{}");
  EXPECT_EQ(*ParseAnswer("HTTP/1.0 200 OK\r\n\r\nuntil the end"), "until the end");
  EXPECT_TRUE(absl::IsNotFound(ParseAnswer("HTTP/1.0 404 Not Found\r\n\r\n{}").status()));
  EXPECT_TRUE(absl::IsPermissionDenied(ParseAnswer("HTTP/1.0 403 Forbidden\r\n\r\n{}").status()));
  EXPECT_TRUE(absl::IsPermissionDenied(ParseAnswer("HTTP/1.0 401 Unauthorized\r\n\r\n{}").status()));
  for (const char* bad : {"", "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\n{}", "HTTP/1.0 200 OK\r\nContent-Length: -1\r\n\r\n{}",
                          "HTTP/1.0 500 No\r\n\r\n", "HTTP/1.0 200 OK\r\n", "SSH-2.0\r\n\r\n", "HTTP/1.0 abc\r\n\r\n"})
    EXPECT_TRUE(absl::IsUnavailable(ParseAnswer(bad).status())) << bad;
}

}  // namespace
}  // namespace r2cc::client
