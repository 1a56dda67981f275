// A group's all_reduces over TCP on the loopback: members in one process, each with its engine, and a rail that is lost in mid-operation.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "netplugin/collnet/driver.h"
#include "netplugin/transport/collective/engine_group.h"
#include "netplugin/transport/collective/workers_reducer.h"
#include "tests/plugin/engine_node.h"

namespace r2cc::net {
namespace {

using abi::DataType;
using abi::RedOp;
using collnet::Driver;
using collnet::OperationId;

constexpr uint32_t kMembers = 4;
constexpr size_t kElements = 200'000;
constexpr uint64_t kPieceBytes = 256 * 1024;
constexpr size_t kUnderWay = 4;
constexpr int64_t kLostAfterMs = 300;
constexpr auto kLimit = std::chrono::seconds(60);

// Not exact in f32: a result that depended on who came first would differ.
float ValueOf(uint32_t member, OperationId operation, size_t at) {
  return 1.0F / static_cast<float>(1 + member * 7 + operation * 3 + at % 1000);
}

struct Member {
  struct Call {
    OperationId operation = 0;
    std::vector<float> contribution = std::vector<float>(kElements), result = std::vector<float>(kElements);
  };
  std::unique_ptr<EngineNode> node;
  uint64_t listen_id = 0;
  std::unique_ptr<WorkersReducer> reducer;
  collnet::HostStaging staging;
  std::unique_ptr<EngineGroup> flows;
  std::unique_ptr<Driver> driver;
  std::deque<std::unique_ptr<Call>> calls;
  OperationId called = 0, done = 0;
};

class GroupOverTcp : public testing::Test {
 protected:
  void Make(const std::vector<FailRail>& fail_rails) {
    std::string error;
    workers_ = ReduceWorkers::Start(1, Processors::OfMainThread(), &error);
    ASSERT_NE(workers_, nullptr) << error;
    std::vector<Handle> handles(kMembers);
    members_.resize(kMembers);
    for (uint32_t i = 0; i < kMembers; ++i) {
      members_[i].node = std::make_unique<EngineNode>("n" + std::to_string(i), i == 1 ? fail_rails : std::vector<FailRail>());
      ASSERT_NE(members_[i].node->engine, nullptr);
      members_[i].listen_id = members_[i].node->engine->Listen(&handles[i]);
    }
    for (uint32_t i = 0; i < kMembers; ++i) {
      Member& member = members_[i];
      member.reducer = std::make_unique<WorkersReducer>(workers_.get());
      member.flows = std::make_unique<EngineGroup>(member.node->engine.get(), member.listen_id, handles);
      member.driver = std::make_unique<Driver>(
          Driver::Options{.group = {.members = kMembers, .member = i}, .number = handles[0].listen_id},
          [](const std::vector<uint64_t>& capacities) { return collnet::PlanFor(capacities, kPieceBytes); },
          [](const collnet::PlanSpec& plan, uint64_t bytes) -> std::shared_ptr<const plan::Schedule> {
            return collnet::MakeSchedule(plan, kMembers, bytes);
          },
          Driver::Means{member.flows.get(), member.reducer.get(), &member.staging});
    }
  }
  void TearDown() override {
    for (Member& member : members_) member.driver.reset();
    for (Member& member : members_) member.flows.reset();
  }
  void CallNext(uint32_t i) {
    Member& member = members_[i];
    auto call = std::make_unique<Member::Call>();
    for (size_t at = 0; at < kElements; ++at) call->contribution[at] = ValueOf(i, member.called, at);
    const auto operation = member.driver->Call({call->contribution.data(), call->result.data(), kElements, DataType::kFloat32, RedOp::kSum},
                                               SteadyClock().Now());
    ASSERT_TRUE(operation.has_value());
    call->operation = *operation;
    ++member.called;
    member.calls.push_back(std::move(call));
  }
  void TakeDone(uint32_t i) {
    Member& member = members_[i];
    while (!member.calls.empty() && member.driver->Done(member.calls.front()->operation)) {
      const Member::Call& call = *member.calls.front();
      size_t wrong = 0;
      for (size_t at = 0; at < kElements; ++at) {
        float want = ValueOf(0, call.operation, at);
        for (uint32_t each = 1; each < kMembers; ++each) want += ValueOf(each, call.operation, at);
        wrong += call.result[at] != want;
      }
      EXPECT_EQ(wrong, 0u) << "member " << i << " operation " << call.operation;
      member.calls.pop_front();
      ++member.done;
    }
  }
  void Turn() {
    for (uint32_t i = 0; i < kMembers; ++i) {
      members_[i].driver->SetCapacity(members_[i].node->engine->UsableBytesPerSecond());
      members_[i].driver->Poll(SteadyClock().Now());
      TakeDone(i);
      ASSERT_EQ(members_[i].driver->error(), "");
    }
  }
  bool RunUntil(const std::function<bool()>& done) {
    for (const auto until = std::chrono::steady_clock::now() + kLimit; !done() && !HasFailure();)
      if (Turn(); std::chrono::steady_clock::now() >= until) return false;
    return !HasFailure();
  }

  std::unique_ptr<ReduceWorkers> workers_;
  std::vector<Member> members_;
};

TEST_F(GroupOverTcp, ARailThatIsLostInMidOperationChangesNoBit) {
  Make({{"127.0.0.2", kLostAfterMs}});
  ASSERT_TRUE(RunUntil(
      [this] { return std::all_of(members_.begin(), members_.end(), [](const Member& member) { return member.driver->connected(); }); }));
  const uint64_t all = members_[1].node->engine->UsableBytesPerSecond();
  OperationId enough = 0;  // so many after the loss
  ASSERT_TRUE(RunUntil([&] {
    if (enough == 0 && members_[1].node->HasFailedOver()) enough = members_[0].called + 20;
    for (uint32_t i = 0; i < kMembers; ++i)
      while (members_[i].calls.size() < kUnderWay && (enough == 0 || members_[i].called < enough)) CallNext(i);
    return enough > 0 && std::all_of(members_.begin(), members_.end(), [&](const Member& member) { return member.done >= enough; });
  }));
  EXPECT_EQ(members_[1].node->engine->UsableBytesPerSecond(), all / 2);
}

TEST_F(GroupOverTcp, AMemberThatGoesIsAnErrorOnTheOthers) {
  Make({});
  ASSERT_TRUE(RunUntil(
      [this] { return std::all_of(members_.begin(), members_.end(), [](const Member& member) { return member.driver->connected(); }); }));
  for (uint32_t i = 0; i < kMembers - 1; ++i) CallNext(i);
  members_.back().driver.reset();
  members_.back().flows.reset();
  members_.back().node.reset();
  const auto until = std::chrono::steady_clock::now() + kLimit;
  for (uint32_t i = 0; i < kMembers - 1; ++i) {
    while (members_[i].driver->error().empty() && std::chrono::steady_clock::now() < until)
      for (uint32_t each = 0; each < kMembers - 1; ++each) members_[each].driver->Poll(SteadyClock().Now());
    EXPECT_NE(members_[i].driver->error().find("has lost member 3"), std::string::npos) << members_[i].driver->error();
  }
  members_.pop_back();
}

}  // namespace
}  // namespace r2cc::net
