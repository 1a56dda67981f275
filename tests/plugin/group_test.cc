// A group's all_reduces over TCP on the loopback, and a rail that is lost in mid-operation.

#include <gtest/gtest.h>

#include <chrono>

#include "netplugin/collnet/plan_spec.h"
#include "tests/plugin/tcp_group.h"

namespace r2cc::net {
namespace {

using collnet::OperationId;

constexpr uint32_t kMembers = 4;
constexpr size_t kElements = 200'000;
constexpr uint64_t kPieceBytes = 256 * 1024;
constexpr size_t kUnderWay = 4;
constexpr int64_t kLostAfterMs = 300;

TcpGroup::Options DirectShares(const std::vector<FailRail>& fail_rails) {
  TcpGroup::Options options;
  options.members = kMembers;
  options.fail_rails[1] = fail_rails;
  options.make_plan = [](const std::vector<uint64_t>& capacities, const std::vector<bool>& reach_all) {
    return collnet::PlanFor(capacities, kPieceBytes, reach_all);
  };
  options.make_steps = [](const collnet::PlanSpec& plan, uint64_t bytes) -> std::shared_ptr<const plan::Schedule> {
    return collnet::MakeSchedule(plan, kMembers, bytes);
  };
  return options;
}

// Not exact in f32: a result that depended on who came first would differ.
float ValueOf(uint32_t member, OperationId operation, size_t at) {
  return 1.0F / static_cast<float>(1 + member * 7 + operation * 3 + at % 1000);
}
std::vector<float> Contribution(uint32_t member, OperationId operation) {
  std::vector<float> values(kElements);
  for (size_t at = 0; at < kElements; ++at) values[at] = ValueOf(member, operation, at);
  return values;
}
void ExpectTheSum(uint32_t member, const TcpGroup::Call& call) {
  size_t wrong = 0;
  for (size_t at = 0; at < kElements; ++at) {
    float want = ValueOf(0, call.operation, at);
    for (uint32_t each = 1; each < kMembers; ++each) want += ValueOf(each, call.operation, at);
    wrong += call.result[at] != want;
  }
  EXPECT_EQ(wrong, 0u) << "member " << member << " operation " << call.operation;
}

TEST(GroupOverTcp, ARailThatIsLostInMidOperationChangesNoBit) {
  TcpGroup group(DirectShares({{"127.0.0.2", kLostAfterMs}}));
  auto& members = group.members();
  ASSERT_TRUE(group.RunUntil([&] { return group.Connected(); }, ExpectTheSum));
  const uint64_t all = members[1].node->engine->UsableBytesPerSecond();
  OperationId enough = 0;  // so many after the loss
  const auto done = [&] {
    if (enough == 0 && members[1].node->HasFailedOver()) enough = members[0].called + 20;
    for (uint32_t i = 0; i < kMembers; ++i)
      while (members[i].calls.size() < kUnderWay && (enough == 0 || members[i].called < enough))
        group.CallNext(i, Contribution(i, members[i].called));
    return enough > 0 && std::all_of(members.begin(), members.end(), [&](const auto& member) { return member.done >= enough; });
  };
  ASSERT_TRUE(group.RunUntil(done, ExpectTheSum));
  EXPECT_EQ(members[1].node->engine->UsableBytesPerSecond(), all / 2);
}

TEST(GroupOverTcp, AMemberThatGoesIsAnErrorOnTheOthers) {
  TcpGroup group(DirectShares({}));
  auto& members = group.members();
  ASSERT_TRUE(group.RunUntil([&] { return group.Connected(); }, ExpectTheSum));
  for (uint32_t i = 0; i < kMembers - 1; ++i) group.CallNext(i, Contribution(i, 0));
  members.back().driver.reset();
  members.back().flows.reset();
  members.back().node.reset();
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  for (uint32_t i = 0; i < kMembers - 1; ++i) {
    while (members[i].driver->error().empty() && std::chrono::steady_clock::now() < until)
      for (uint32_t each = 0; each < kMembers - 1; ++each) members[each].driver->Poll(SteadyClock().Now());
    EXPECT_NE(members[i].driver->error().find("has lost member 3"), std::string::npos) << members[i].driver->error();
  }
  members.pop_back();
}

}  // namespace
}  // namespace r2cc::net
