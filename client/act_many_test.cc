#include "client/act_many.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace r2cc::client {
namespace {

v1::ListNicsReply Cluster() {
  v1::ListNicsReply list;
  for (const char* node : {"a1", "a2", "b1"}) {
    v1::NodeView* view = list.add_nodes();
    view->set_node(node);
    for (const char* nic : {"rail0", "rail1"}) view->add_nics()->set_name(nic);
  }
  return list;
}

std::string Names(const std::string& node, const std::string& nic) {
  std::string text;
  for (const NicName& name : Matching(Cluster(), node, nic)) text += (text.empty() ? "" : " ") + name.node + "/" + name.nic;
  return text;
}

TEST(ActManyTest, ARailANodeAndALeaf) {
  EXPECT_EQ(Names("*", "rail1"), "a1/rail1 a2/rail1 b1/rail1");
  EXPECT_EQ(Names("rail1", "*"), "a1/rail1 a2/rail1 b1/rail1");
  EXPECT_EQ(Names("a1", "*"), "a1/rail0 a1/rail1");
  EXPECT_EQ(Names("a*", "rail0"), "a1/rail0 a2/rail0");
  EXPECT_EQ(Names("a1", "rail0"), "a1/rail0");
  EXPECT_EQ(Names("c*", "rail0"), "");
  EXPECT_EQ(Names("c", "*"), "");
}

TEST(ActManyTest, QuietIsWithoutJobsOrWithoutBytesForAWhile) {
  v1::NicTraffic traffic;
  EXPECT_TRUE(IsQuiet(traffic)) << "nobody is there";
  traffic.add_jobs("train (pid 7)");
  traffic.set_quiet_ns(1'000'000'000);
  EXPECT_FALSE(IsQuiet(traffic));
  traffic.set_quiet_ns(3'000'000'000);
  EXPECT_TRUE(IsQuiet(traffic));
  traffic.set_quiet_ns(-1);
  EXPECT_TRUE(IsQuiet(traffic)) << "it never moved a byte";
}

TEST(ActManyTest, NodesAreAskedAtTheSameTimeAndTheNicsOfOneInTurn) {
  const std::vector<NicName> names = {{"a1", "rail0"}, {"a2", "rail0"}, {"a1", "rail1"}, {"b1", "rail0"}};
  absl::Mutex mutex;
  std::vector<std::string> of_a1;
  std::set<std::string> begun;
  v1::NicActionRequest request;
  request.set_action(v1::DRAIN);
  const auto outcomes = ActOnEach(names, request, [&](const v1::NicActionRequest& one) -> absl::StatusOr<v1::NicActionReply> {
    absl::MutexLock lock(&mutex);
    EXPECT_EQ(one.action(), v1::DRAIN);
    if (one.node() == "a1") of_a1.push_back(one.nic());
    begun.insert(one.node());
    // Nobody goes on before all three nodes are asked.
    const auto all = [&] { return begun.size() == 3; };
    EXPECT_TRUE(mutex.AwaitWithTimeout(absl::Condition(&all), absl::Seconds(30))) << "one node waits for another";
    if (one.node() == "a2") return absl::PermissionDeniedError("no role");
    v1::NicActionReply reply;
    reply.mutable_nic()->set_name(one.node() + "-" + one.nic());
    return reply;
  });
  EXPECT_EQ(of_a1, (std::vector<std::string>{"rail0", "rail1"}));
  ASSERT_EQ(outcomes.size(), names.size());
  EXPECT_EQ(outcomes[0]->nic().name(), "a1-rail0");
  EXPECT_TRUE(absl::IsPermissionDenied(outcomes[1].status()));
  EXPECT_EQ(outcomes[2]->nic().name(), "a1-rail1");
  EXPECT_EQ(outcomes[3]->nic().name(), "b1-rail0");
}

TEST(ActManyTest, RefusalsNameEachNodeAndItsReason) {
  const std::vector<NicName> names = {{"a1", "rail0"}, {"a1", "rail1"}, {"a2", "rail0"}, {"b1", "rail0"}};
  const absl::Status no_role = absl::PermissionDeniedError("no role");
  const std::vector<absl::StatusOr<v1::NicActionReply>> outcomes = {no_role, no_role, v1::NicActionReply(),
                                                                    absl::UnavailableError("Connection refused")};
  EXPECT_EQ(Refusals(names, outcomes),
            absl::PermissionDeniedError("3 of 4 NICs were refused\na1/rail0,rail1: no role\nb1/rail0: Connection refused"));
  EXPECT_EQ(Refusals({names[0]}, {no_role}), no_role);
  EXPECT_EQ(Refusals({names[0]}, {v1::NicActionReply()}), absl::OkStatus());
  const std::vector<NicName> many = [] {
    std::vector<NicName> all;
    for (int i = 0; i < 100; ++i) all.push_back({"n" + std::to_string(100 + i), "rail0"});
    return all;
  }();
  const std::string text(Refusals(many, std::vector<absl::StatusOr<v1::NicActionReply>>(100, no_role)).message());
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 33) << text;
  EXPECT_TRUE(text.ends_with("\nand 68 more nodes")) << text;
}

}  // namespace
}  // namespace r2cc::client
