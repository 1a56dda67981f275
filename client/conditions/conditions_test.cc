#include "client/conditions/conditions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "client/conditions/fake_kubernetes_api.h"

namespace r2cc::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kNow = 1'764'237'600'000'000'000;
constexpr char kEarlier[] = "2025-11-27T09:55:00Z";
constexpr char kManager[] = "r2cc-conditions.r2cc";
const NodeConditions::Write kDegraded = {
    .node = "n0", .condition = {ConditionStatus::kTrue, "RailDegraded", "rail1 FAILED: \"x\""}, .turned = true};

constexpr char kPatchOfN0[] = "PATCH /api/v1/nodes/n0/status?fieldManager=r2cc-conditions.r2cc";

// A node of Kubernetes with a condition that `writer` wrote last; empty: Kubernetes does not name the writer.
std::string NodeOf(const std::string& name, const std::string& status, const std::string& writer, const std::string& heartbeat) {
  const auto managed = [](const std::string& manager, const std::string& time, const std::string& field) {
    return absl::StrCat(R"({"manager":")", manager, R"(","operation":"Update","time":")", time,
                        R"(","fieldsV1":{"f:status":{"f:conditions":{"k:{\"type\":\"R2CCRailDegraded\"}":{")", field, R"(":{}}}}}})");
  };
  // The first of all writers keeps the fields that nobody has changed since.
  const std::string fields =
      writer.empty() ? "" : managed("first", "2025-11-01T00:00:00Z", "f:type") + "," + managed(writer, heartbeat, "f:lastHeartbeatTime");
  return absl::StrCat(R"({"metadata":{"name":")", name, R"(","managedFields":[)", fields,
                      R"(]},"status":{"conditions":[{"type":"Ready"},{"type":"R2CCRailDegraded","status":")", status,
                      R"(","reason":"RailDegraded","message":"rail1 FAILED","lastHeartbeatTime":")", heartbeat, R"("}]}})");
}

std::vector<std::string> Asked(const FakeKubernetesApi& api) {
  std::vector<std::string> asked;
  for (const auto& request : api.asked) asked.push_back(request.method + " " + request.path);
  return asked;
}

TEST(WriteCondition, ATurnIsAPatchAndAnEvent) {
  FakeKubernetesApi api;
  ASSERT_TRUE(WriteCondition(kDegraded, kManager, kNow, &api).ok());
  EXPECT_THAT(Asked(api), ElementsAre("GET /api/v1/nodes/n0", kPatchOfN0, "POST /api/v1/namespaces/default/events"));
  EXPECT_EQ(api.asked[1].content_type, "application/strategic-merge-patch+json");
  EXPECT_THAT(api.asked[1].body, HasSubstr(R"("lastTransitionTime":"2025-11-27T10:00:00Z")"));
  EXPECT_THAT(api.asked[1].body, HasSubstr(R"(\"x\")"));
  EXPECT_THAT(api.asked[2].body, HasSubstr(R"("type":"Warning")"));
}

TEST(WriteCondition, AHeartbeatChangesNoTransition) {
  FakeKubernetesApi api;
  api.node = NodeOf("n0", "True", kManager, kEarlier);
  NodeConditions::Write write = kDegraded;
  write.turned = false;
  ASSERT_TRUE(WriteCondition(write, kManager, kNow, &api).ok());
  EXPECT_THAT(Asked(api), ElementsAre("GET /api/v1/nodes/n0", kPatchOfN0));
  EXPECT_THAT(api.asked[1].body, Not(HasSubstr("lastTransitionTime")));
}

TEST(WriteCondition, ExistingConditionsDecideWhatIsNew) {
  NodeConditions::Write write = kDegraded;
  write.turned = false;
  FakeKubernetesApi none;
  ASSERT_TRUE(WriteCondition(write, kManager, kNow, &none).ok());
  EXPECT_EQ(none.asked.size(), 3u) << "with an Event";
  write.condition.status = ConditionStatus::kFalse;
  FakeKubernetesApi well;
  ASSERT_TRUE(WriteCondition(write, kManager, kNow, &well).ok());
  EXPECT_EQ(well.asked.size(), 2u) << "that all is well is no news";
  EXPECT_THAT(well.asked[1].body, HasSubstr("lastTransitionTime"));
  FakeKubernetesApi garbage;
  garbage.node = "<html>";
  EXPECT_FALSE(WriteCondition(write, kManager, kNow, &garbage).ok());
}

TEST(WriteCondition, AnotherWritersConditionIsLeftToIt) {
  FakeKubernetesApi api;
  for (const char* other : {"node-problem-detector", "r2cc-conditions.other", "r2cc-conditions"}) {
    api.node = NodeOf("n0", "False", other, kEarlier);
    const absl::Status status = WriteCondition(kDegraded, kManager, kNow, &api);
    EXPECT_TRUE(absl::IsFailedPrecondition(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr(other));
  }
  EXPECT_EQ(api.asked.size(), 3u) << "nothing is written";
  api.node = NodeOf("n0", "False", "node-problem-detector", "2025-11-27T09:44:00Z");
  EXPECT_TRUE(WriteCondition(kDegraded, kManager, kNow, &api).ok()) << "it is silent for 16 minutes";
  api.node = NodeOf("n0", "False", "", kEarlier);
  EXPECT_TRUE(WriteCondition(kDegraded, kManager, kNow, &api).ok()) << "nobody is known to write it";
}

TEST(FieldManager, NamesThePodsNamespace) {
  const std::string account = testing::TempDir();
  EXPECT_EQ(FieldManager(account + "/nowhere"), "r2cc-conditions");
  std::ofstream(account + "/namespace") << "r2cc";
  EXPECT_EQ(FieldManager(account), kManager);
  std::ofstream(account + "/namespace") << "x&force=true";
  EXPECT_EQ(FieldManager(account), "r2cc-conditions");
}

TEST(FollowConditions, LogsOnceWhatFailsAndThatItWorksAgain) {
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
                    kManager, &api, [] { return kNow; }, [&] { return now; }, [&](const std::string& line) { lines.push_back(line); },
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
               absl::StrCat(R"({"metadata":{},"items":[)", NodeOf("n1", "True", kManager, kEarlier), ",",
                            NodeOf("n2", "True", "r2cc-conditions.other", kEarlier), ",",
                            NodeOf("n3", "True", "node-problem-detector", kEarlier), ",", NodeOf("n4", "True", "", kEarlier), "]}")};
  NodeConditions conditions;
  ASSERT_TRUE(AdoptConditions(&api, kManager, 0, &conditions).ok());
  EXPECT_THAT(Asked(api), ElementsAre("GET /api/v1/nodes?limit=16", "GET /api/v1/nodes?limit=16&continue=eyJ2_-="));
  const auto writes = conditions.Look({}, NodeConditions::kGone);
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_EQ(writes[0].node, "n1") << "the others are other writers'";
}

TEST(AdoptConditions, AListThatIsNoneIsAnError) {
  for (const char* page : {"<html>", R"({"metadata":{"continue":"x HTTP/1.0\r\nX: y"},"items":[]})"}) {
    FakeKubernetesApi api;
    api.pages = {page};
    NodeConditions conditions;
    EXPECT_TRUE(absl::IsUnavailable(AdoptConditions(&api, kManager, 0, &conditions))) << page;
  }
}

// A node whose last condition was True left while r2cc-conditions did not run.
TEST(FollowConditions, ANodeThatLeftBeforeItsStartBecomesUnknown) {
  FakeKubernetesApi api;
  api.node = NodeOf("gone", "True", kManager, kEarlier);
  api.pages = {absl::StrCat(R"({"items":[)", api.node, "]}")};
  Nanos now = kNanosPerSecond;
  FollowConditions({[] { return std::vector<v1::NodeView>(); }, kManager, &api, [] { return kNow; }, [&] { return now; },
                    [](const std::string&) {},
                    [&](int milliseconds) {
                      now += milliseconds * kNanosPerMs;
                      return now < 2 * NodeConditions::kGone;
                    }});
  EXPECT_THAT(Asked(api),
              ElementsAre("GET /api/v1/nodes?limit=16", "GET /api/v1/nodes/gone",
                          "PATCH /api/v1/nodes/gone/status?fieldManager=r2cc-conditions.r2cc", "POST /api/v1/namespaces/default/events"));
  EXPECT_THAT(api.asked[2].body, HasSubstr(R"("status":"Unknown")"));
}

// As a node pool that shrinks: r2ccd's view keeps a node for days.
TEST(FollowConditions, ANodeThatIsGoneIsNoTrouble) {
  FakeKubernetesApi api;
  v1::NodeView node;
  node.set_node("n0");
  node.add_nics()->set_state(v1::HEALTHY);
  node.mutable_nics(0)->set_operator_weight_permille(1000);
  std::vector<std::string> lines;
  Nanos now = kNanosPerSecond;
  bool in_view = true;
  FollowConditions({[&] { return in_view ? std::vector<v1::NodeView>{node} : std::vector<v1::NodeView>(); }, kManager, &api,
                    [] { return kNow; }, [&] { return now; }, [&](const std::string& line) { lines.push_back(line); },
                    [&](int milliseconds) {
                      now += milliseconds * kNanosPerMs;
                      // In turn: Kubernetes loses it, r2ccd too, and then the view.
                      api.missing = now > 60 * kNanosPerSecond;
                      if (now > 120 * kNanosPerSecond) node.set_word(v1::NODE_UNREACHABLE);
                      in_view = now < 4 * NodeConditions::kGone;
                      return now < 8 * NodeConditions::kGone;
                    }});
  EXPECT_THAT(lines, ElementsAre());
}

// Its name there is another one.
TEST(FollowConditions, ANodeThatRunsAndThatKubernetesDoesNotKnowIsTrouble) {
  FakeKubernetesApi api;
  api.missing = true;
  v1::NodeView node;
  node.set_node("n0");
  node.add_nics()->set_state(v1::HEALTHY);
  std::vector<std::string> lines;
  Nanos now = kNanosPerSecond;
  FollowConditions({[&] { return std::vector<v1::NodeView>{node}; }, kManager, &api, [] { return kNow; }, [&] { return now; },
                    [&](const std::string& line) { lines.push_back(line); },
                    [&](int milliseconds) {
                      now += milliseconds * kNanosPerMs;
                      if (now > 2 * NodeConditions::kGone) node.set_word(v1::NODE_UNREACHABLE);
                      return now < 4 * NodeConditions::kGone;
                    }});
  EXPECT_THAT(lines, ElementsAre("the condition of node n0 is not written: status 404")) << "and that it leaves is no repair";
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
