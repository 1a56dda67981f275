// A group of drivers in one process, each with its engine over TCP on the loopback.
#ifndef R2CC_TESTS_PLUGIN_TCP_GROUP_H_
#define R2CC_TESTS_PLUGIN_TCP_GROUP_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "netplugin/collnet/group_driver.h"
#include "netplugin/transport/collective/engine_group.h"
#include "netplugin/transport/collective/workers_reducer.h"
#include "tests/plugin/engine_node.h"

namespace r2cc::net {

class TcpGroup {
 public:
  struct Call {
    collnet::OperationId operation = 0;
    std::vector<float> contribution, result;
  };
  struct Member {
    std::unique_ptr<EngineNode> node;
    uint64_t listen_id = 0;
    std::unique_ptr<WorkersReducer> reducer;
    collnet::HostStaging staging;
    std::unique_ptr<EngineGroup> flows;
    std::unique_ptr<collnet::GroupDriver> driver;
    std::deque<std::unique_ptr<Call>> calls;  // that were not taken
    collnet::OperationId called = 0, done = 0;
  };
  struct Options {
    uint32_t members = 4;
    std::map<uint32_t, std::vector<FailRail>> fail_rails;  // by member
    collnet::MemberExecutor::MakePlan make_plan;
    collnet::MemberExecutor::MakeSteps make_steps;
  };

  explicit TcpGroup(const Options& options) {
    std::string error;
    workers_ = ReduceWorkers::Start(1, Processors::OfMainThread(), &error);
    EXPECT_NE(workers_, nullptr) << error;
    std::vector<Handle> handles(options.members);
    members_.resize(options.members);
    for (uint32_t i = 0; i < options.members; ++i) {
      const auto fails = options.fail_rails.find(i);
      members_[i].node = std::make_unique<EngineNode>("n" + std::to_string(i),
                                                      fails == options.fail_rails.end() ? std::vector<FailRail>() : fails->second);
      members_[i].listen_id = members_[i].node->engine->Listen(&handles[i]);
    }
    for (uint32_t i = 0; i < options.members; ++i) {
      Member& member = members_[i];
      member.reducer = std::make_unique<WorkersReducer>(workers_.get());
      member.flows = std::make_unique<EngineGroup>(member.node->engine.get(), member.listen_id, handles);
      member.driver = std::make_unique<collnet::GroupDriver>(
          collnet::GroupDriver::Options{.group = {.members = options.members, .member = i}, .number = handles[0].listen_id},
          options.make_plan, options.make_steps, collnet::GroupDriver::Means{member.flows.get(), member.reducer.get(), &member.staging});
    }
  }
  ~TcpGroup() {
    for (Member& member : members_) member.driver.reset();
    for (Member& member : members_) member.flows.reset();
  }
  TcpGroup(const TcpGroup&) = delete;
  TcpGroup& operator=(const TcpGroup&) = delete;

  std::vector<Member>& members() { return members_; }

  // Sums.
  void CallNext(uint32_t i, std::vector<float> contribution) {
    Member& member = members_[i];
    auto call = std::make_unique<Call>();
    call->contribution = std::move(contribution);
    call->result.resize(call->contribution.size());
    const auto operation = member.driver->Call(
        {call->contribution.data(), call->result.data(), call->contribution.size(), abi::DataType::kFloat32, abi::RedOp::kSum},
        SteadyClock().Now());
    ASSERT_TRUE(operation.has_value()) << member.driver->error();
    call->operation = *operation;
    ++member.called;
    member.calls.push_back(std::move(call));
  }
  // All members move what there is to move; `take` gets each operation that is done, in order.
  void Turn(const std::function<void(uint32_t member, const Call&)>& take) {
    for (uint32_t i = 0; i < members_.size(); ++i) {
      Member& member = members_[i];
      member.driver->SetCapacity(member.node->engine->UsableBytesPerSecond());
      member.driver->Poll(SteadyClock().Now());
      for (; !member.calls.empty() && member.driver->Done(member.calls.front()->operation); member.calls.pop_front()) {
        take(i, *member.calls.front());
        ++member.done;
      }
      ASSERT_EQ(member.driver->error(), "");
    }
  }
  // False after a minute, or if the test has failed.
  bool RunUntil(const std::function<bool()>& done, const std::function<void(uint32_t, const Call&)>& take) {
    for (const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1); !done() && !testing::Test::HasFailure();)
      if (Turn(take); std::chrono::steady_clock::now() >= until) return false;
    return !testing::Test::HasFailure();
  }
  bool Connected() const {
    return std::all_of(members_.begin(), members_.end(), [](const Member& member) { return member.driver->connected(); });
  }

 private:
  std::unique_ptr<ReduceWorkers> workers_;
  std::vector<Member> members_;
};

}  // namespace r2cc::net

#endif  // R2CC_TESTS_PLUGIN_TCP_GROUP_H_
