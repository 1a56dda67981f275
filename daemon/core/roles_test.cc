#include "daemon/core/roles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace r2cc::daemon {
namespace {

constexpr int64_t kR2cc = 600;

Caller User(uint32_t uid, std::vector<uint32_t> groups = {}) {
  return {.kind = Caller::Kind::kLocal, .uid = uid, .gid = uid, .groups = std::move(groups), .pid = 1};
}
Caller On(const std::string& node, Caller caller) {
  caller.via = node;
  caller.via_proven = true;
  return caller;
}
// "v", "vo", "vod"
std::string Roles(const RolePolicy& policy, const Caller& caller) {
  return std::string(policy.Has(caller, Role::kView) ? "v" : "") + (policy.Has(caller, Role::kOperate) ? "o" : "") +
         (policy.Has(caller, Role::kDrill) ? "d" : "");
}
const Caller kAlice{.kind = Caller::Kind::kOperator, .name = "alice", .address = "10.0.0.9:1"};

TEST(RolesTest, AProcessOfAContainerHasNone) {
  const RolePolicy policy({{.roles = 7, .uids = {0, 65534}, .gids = {65534}, .everyone = true}}, true);
  ASSERT_EQ(Roles(policy, User(65534)), "vod");
  Caller contained = User(65534);
  contained.contained = true;
  EXPECT_EQ(Roles(policy, contained), "");
  const std::string why(policy.Check(contained, Role::kView, "n0").message());
  EXPECT_NE(why.find("a process of a container (pid 1) has no role on node n0: ask outside of containers"), std::string::npos) << why;
  contained.pid = 0;
  EXPECT_NE(policy.Check(contained, Role::kView, "n0").message().find("r2ccd runs in a container"), std::string::npos);
}

TEST(RolesTest, Defaults) {
  const RolePolicy policy(DefaultGrants(kR2cc, false), true);
  EXPECT_EQ(Roles(policy, User(0)), "vod");
  EXPECT_EQ(Roles(policy, User(1000, {kR2cc})), "vo");
  EXPECT_EQ(Roles(policy, User(1000)), "v");
  EXPECT_EQ(Roles(policy, kAlice), "vo");
  EXPECT_EQ(Roles(policy, Caller{}), "");
  EXPECT_EQ(Roles(policy, Caller{.kind = Caller::Kind::kNode, .name = "n1"}), "") << "a node's certificate is no person's";
}

TEST(RolesTest, RootOfAnotherNodeIsNotRootHere) {
  const RolePolicy policy(DefaultGrants(kR2cc, false), true);
  EXPECT_EQ(Roles(policy, On("n1", User(0))), "v");
  EXPECT_EQ(Roles(policy, On("n1", User(1000, {kR2cc}))), "v");
  EXPECT_EQ(Roles(policy, On("n1", kAlice)), "v") << "n1 may claim that, and is not believed";
  const RolePolicy open(DefaultGrants(kR2cc, true), true);
  EXPECT_EQ(Roles(open, On("n1", User(0))), "vod");
  EXPECT_EQ(Roles(open, Caller{}), "") << "insecure peers are received, but nobody without a name acts";
}

TEST(RolesTest, DrillsAreOffUnlessConfigured) {
  const RolePolicy policy(DefaultGrants(-1, false), false);
  EXPECT_EQ(Roles(policy, User(0)), "vo");
  EXPECT_EQ(policy.Check(User(0), Role::kDrill, "n0").message(),
            "drills are off on node n0: set drills { allow: true } in its configuration");
}

TEST(RolesTest, TheOwnersKeepAllRolesUnderAnyGrants) {
  const RolePolicy policy({OwnersGrant(300), {.roles = 3, .gids = {7}}}, true);
  EXPECT_EQ(Roles(policy, User(0)), "vod");
  EXPECT_EQ(Roles(policy, User(300)), "vod");
  EXPECT_EQ(Roles(policy, User(1000)), "");
  EXPECT_EQ(Roles(policy, On("n1", User(0))), "") << "root of another node owns nothing here";
}

TEST(RolesTest, GrantsTakeRolesAway) {
  const Grant netops{.roles = 3, .gids = {7}};
  const std::string start = "grants replace the defaults: ";
  EXPECT_EQ(LostByGrants({OwnersGrant(300), netops}, kR2cc, false),
            (std::vector<std::string>{
                start + "members of group r2cc lose VIEW and OPERATE; to keep it: grants { roles: VIEW roles: OPERATE groups: \"r2cc\" }",
                start + "other users of this node lose VIEW; to keep it: grants { roles: VIEW everyone: true }",
                start + "operators with a certificate lose VIEW and OPERATE; to keep it: grants { roles: VIEW roles: OPERATE operators: "
                        "\"*\" }",
                start + "other users of other nodes lose VIEW; to keep it: grants { roles: VIEW everyone: true on_nodes: \"*\" }"}));
  EXPECT_EQ(LostByGrants({OwnersGrant(300), netops}, -1, false).size(), 3u) << "there is no group r2cc";
  EXPECT_EQ(LostByGrants(DefaultGrants(kR2cc, false), kR2cc, false), std::vector<std::string>());
  EXPECT_EQ(LostByGrants(DefaultGrants(kR2cc, true), kR2cc, true), std::vector<std::string>());
  EXPECT_EQ(LostByGrants(DefaultGrants(kR2cc, false), kR2cc, true).size(), 2u) << "root and group r2cc of other nodes";
  // Alice may, and other operators may not.
  EXPECT_EQ(LostByGrants(
                {{.roles = 1, .everyone = true}, {.roles = 1, .everyone = true, .on_nodes = {"*"}}, {.roles = 3, .operators = {"alice"}}},
                -1, false),
            std::vector<std::string>{start + "operators with a certificate lose VIEW and OPERATE; to keep it: grants { roles: VIEW roles: "
                                             "OPERATE operators: \"*\" }"});
}

TEST(RolesTest, Configured) {
  const RolePolicy policy({{.roles = 7, .uids = {7}, .on_nodes = {"n1"}}, {.roles = 4, .operators = {"bob"}}}, true);
  EXPECT_EQ(Roles(policy, User(7)), "");
  EXPECT_EQ(Roles(policy, On("n1", User(7))), "vod");
  EXPECT_EQ(Roles(policy, On("n2", User(7))), "");
  EXPECT_EQ(Roles(policy, kAlice), "");
  EXPECT_EQ(Roles(policy, {.kind = Caller::Kind::kOperator, .name = "bob"}), "d");
  EXPECT_EQ(
      policy.Check(User(8), Role::kOperate, "n0").message(),
      "uid 8 (pid 1) does not have the role OPERATE on node n0: by default root and group r2cc have it; set grants in its configuration");
  EXPECT_EQ(policy.Check(User(8), Role::kView, "n0").message(),
            "uid 8 (pid 1) does not have the role VIEW on node n0: by default every user of the node has it, and grants in its "
            "configuration replace that");
  EXPECT_EQ(policy.Check(User(8), Role::kDrill, "n0").message(),
            "uid 8 (pid 1) does not have the role DRILL on node n0: by default root has it; set grants in its configuration");
  // `r2ccctl --server` without --certs on a node shows the node's certificate, also for root.
  EXPECT_THAT(std::string(policy.Check({.kind = Caller::Kind::kNode, .name = "n1"}, Role::kView, "n0").message()),
              testing::EndsWith("does not have the role VIEW on node n0: use an operator's certificate (--certs)"));
  EXPECT_EQ(policy.Check(On("n2", User(7)), Role::kOperate, "n0").message(),
            "uid 7 (pid 1) on n2 does not have the role OPERATE on node n0: ask on n0 itself, use an operator's certificate (--server, "
            "--certs), or set grants with on_nodes: \"n2\" in its configuration");
}

}  // namespace
}  // namespace r2cc::daemon
