#include "daemon/core/caller.h"

#include <gtest/gtest.h>

namespace r2cc::daemon {
namespace {

TEST(CallerTest, IsDescribedForPeople) {
  EXPECT_EQ(Describe({.address = "10.0.0.1:5"}), "an unauthenticated caller at 10.0.0.1:5");
  EXPECT_EQ(Describe({.kind = Caller::Kind::kLocal, .uid = 1000, .pid = 7}), "uid 1000 (pid 7)");
  EXPECT_EQ(Describe({.kind = Caller::Kind::kLocal, .pid = 7, .contained = true}), "a process of a container (pid 7)");
  EXPECT_EQ(Describe({.kind = Caller::Kind::kLocal, .uid = 0, .pid = 7, .via = "n1"}), "uid 0 (pid 7) on n1");
  EXPECT_EQ(Describe({.kind = Caller::Kind::kOperator, .name = "alice", .address = "[::1]:5", .via = "n1"}),
            "operator alice at [::1]:5 on n1");
  EXPECT_EQ(Describe({.kind = Caller::Kind::kNode, .name = "n2", .address = "10.0.0.1:5"}), "node n2 at 10.0.0.1:5");
}

TEST(CallerTest, TravelsWithAForwardedRequest) {
  const Caller local{.kind = Caller::Kind::kLocal, .uid = 1000, .gid = 100, .groups = {7, 8}, .pid = 42};
  Caller of_many_groups = local;
  for (uint32_t group = 1; group <= 600; ++group) of_many_groups.groups.push_back(group);
  const Caller n1{.kind = Caller::Kind::kNode, .name = "n1", .address = "10.0.0.1:5"};
  const Caller there = FromAsker(ToAsker(local, "n1"), n1);
  EXPECT_EQ(Describe(there), "uid 1000 (pid 42) on n1");
  EXPECT_EQ(there.groups, local.groups);
  EXPECT_EQ(FromAsker(ToAsker(of_many_groups, "n1"), n1).groups, of_many_groups.groups) << "the role comes with the last";
  EXPECT_EQ(there.gid, 100u);
  EXPECT_TRUE(there.forwarded());
  EXPECT_TRUE(there.via_proven);
  const Caller alice{.kind = Caller::Kind::kOperator, .name = "alice", .address = "10.0.0.9:1"};
  EXPECT_EQ(Describe(FromAsker(ToAsker(alice, "n1"), n1)), "operator alice at 10.0.0.9:1 on n1");
}

TEST(CallerTest, TheForwarderIsTheNodeOfItsCertificate) {
  v1::Asker asker;
  asker.set_node("n7");
  EXPECT_EQ(FromAsker(asker, {.kind = Caller::Kind::kNode, .name = "n1"}).via, "n1");
  const Caller unproven = FromAsker(asker, {.address = "10.0.0.1:5"});
  EXPECT_EQ(unproven.via, "n7");
  EXPECT_FALSE(unproven.via_proven);
  asker.set_node("");
  EXPECT_TRUE(FromAsker(asker, {}).forwarded()) << "a caller through a peer's port is never taken for a local one";
  asker.set_operator_name(std::string(1000, '\n'));
  EXPECT_EQ(FromAsker(asker, {}).name, std::string(63, '?'));
}

}  // namespace
}  // namespace r2cc::daemon
