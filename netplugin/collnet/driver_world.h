// Builds a group of drivers in one process, with real bytes, for tests of what they do.
#ifndef R2CC_NETPLUGIN_COLLNET_DRIVER_WORLD_H_
#define R2CC_NETPLUGIN_COLLNET_DRIVER_WORLD_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "netplugin/collnet/fake_group.h"
#include "netplugin/collnet/group_driver.h"

namespace r2cc::collnet {

using abi::DataType;
using abi::RedOp;

constexpr uint64_t kGroup = 77;
constexpr uint64_t kPieceBytes = 4096;

inline PlanSpec MakePlan(const std::vector<uint64_t>& bytes_per_s, const std::vector<bool>& reach_all = {}) {
  return PlanFor(bytes_per_s, kPieceBytes, reach_all);
}

// Integers, whose sum does not depend on the order.
struct Vector {
  explicit Vector(size_t count) : contribution(count), result(count) {}
  std::vector<int64_t> contribution, result;
};

// Reduces until a test breaks it; then reductions have no result.
class BreakableReducer final : public Reducer {
 public:
  std::unique_ptr<Reduction> Begin(DataType type, RedOp op, const std::vector<net::Buffer>& sources, net::Buffer out,
                                   size_t count) override {
    if (broken) return std::make_unique<Nothing>();
    return reducer_.Begin(type, op, sources, out, count);
  }
  bool broken = false;

 private:
  struct Nothing final : Reduction {
    bool done() const override { return true; }
    void Wait() override {}
    std::string error() const override { return "the reducer is broken"; }
  };
  CallersReducer reducer_;
};

class GroupTest : public testing::Test {
 protected:
  struct Member {
    std::unique_ptr<FakeGroup> flows;
    std::unique_ptr<GroupDriver> driver;
    std::vector<std::unique_ptr<Vector>> vectors;
    std::vector<OperationId> operations;
  };

  void Make(uint32_t members, Nanos deadline = 0) {
    members_.resize(members);
    for (uint32_t member = 0; member < members; ++member) Start(member, members, deadline);
  }
  void Start(uint32_t member, uint32_t members, Nanos deadline = 0, uint64_t group = kGroup) {
    members_[member].flows = std::make_unique<FakeGroup>(&network_, member);
    GroupDriver::Options options{.group = {.members = members, .member = member, .slots = 2, .deadline = deadline}, .number = group};
    members_[member].driver = std::make_unique<GroupDriver>(
        options, MakePlan,
        [members](const PlanSpec& plan, uint64_t bytes) -> std::shared_ptr<const plan::Schedule> {
          return MakeSchedule(plan, members, bytes);
        },
        GroupDriver::Means{members_[member].flows.get(), &reducer_, &staging_[member]});
  }
  // The next operation of a member; its values depend on the member and the operation.
  void Call(uint32_t number, size_t count, RedOp op = RedOp::kSum) {
    Member& member = members_[number];
    Vector& vector = *member.vectors.emplace_back(std::make_unique<Vector>(count));
    for (size_t i = 0; i < count; ++i) vector.contribution[i] = ValueOf(number, member.operations.size(), i);
    const auto operation = member.driver->Call({vector.contribution.data(), vector.result.data(), count, DataType::kInt64, op}, now_);
    ASSERT_TRUE(operation.has_value());
    member.operations.push_back(*operation);
  }
  static int64_t ValueOf(uint32_t member, size_t operation, size_t at) {
    return static_cast<int64_t>((member + 1) * 1'000'003 + operation * 7919 + at * 31);
  }
  void Turn() {
    now_ += kNanosPerMs;
    network_.Move();
    for (Member& member : members_)
      if (member.driver != nullptr && (poll_failed_ || member.driver->error().empty())) member.driver->Poll(now_);
  }
  // Runs until `done`, which must become true.
  void RunUntil(const std::function<bool()>& done) {
    for (int turns = 0; !done(); ++turns) {
      ASSERT_LT(turns, 20'000);
      Turn();
    }
  }
  bool AllDone() const {
    return std::all_of(members_.begin(), members_.end(), [](const Member& member) {
      return std::all_of(member.operations.begin(), member.operations.end(), [&](OperationId id) { return member.driver->Done(id); });
    });
  }
  bool AllFailed() const {
    return std::all_of(members_.begin(), members_.end(), [](const Member& member) { return !member.driver->error().empty(); });
  }
  bool AllConnected() const {
    return std::all_of(members_.begin(), members_.end(),
                       [](const Member& member) { return member.driver != nullptr && member.driver->connected(); });
  }
  void ExpectSums() {
    for (Member& member : members_)
      for (size_t operation = 0; operation < member.operations.size(); ++operation) {
        const std::vector<int64_t>& result = member.vectors[operation]->result;
        size_t wrong = 0;
        for (size_t i = 0; i < result.size(); ++i) {
          int64_t want = 0;
          for (uint32_t each = 0; each < members_.size(); ++each) want += ValueOf(each, operation, i);
          wrong += result[i] != want;
        }
        EXPECT_EQ(wrong, 0u) << "operation " << operation;
      }
  }

  Nanos now_ = kNanosPerSecond;
  bool poll_failed_ = true;
  FakeNetwork network_{1};
  BreakableReducer reducer_;
  HostStaging staging_[8];
  std::vector<Member> members_;
};

}  // namespace r2cc::collnet

#endif  // R2CC_NETPLUGIN_COLLNET_DRIVER_WORLD_H_
