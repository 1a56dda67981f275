// Groups of drivers in one process, with real bytes.
#include "netplugin/collnet/driver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "netplugin/collnet/fake_group.h"

namespace r2cc::collnet {
namespace {

using abi::DataType;
using abi::RedOp;

constexpr uint64_t kGroup = 77;
constexpr uint64_t kPieceBytes = 4096;

PlanSpec MakePlan(const std::vector<uint64_t>& bytes_per_s) { return PlanFor(bytes_per_s, kPieceBytes); }

// Of integers, whose sum does not depend on the order.
struct Vector {
  explicit Vector(size_t count) : contribution(count), result(count) {}
  std::vector<int64_t> contribution, result;
};

// Until it is broken: then reductions come to nothing.
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
    std::unique_ptr<Driver> driver;
    std::vector<std::unique_ptr<Vector>> vectors;
    std::vector<OperationId> operations;
  };

  void Make(uint32_t members, Nanos deadline = 0) {
    members_.resize(members);
    for (uint32_t member = 0; member < members; ++member) Start(member, members, deadline);
  }
  void Start(uint32_t member, uint32_t members, Nanos deadline = 0, uint64_t group = kGroup) {
    members_[member].flows = std::make_unique<FakeGroup>(&network_, member);
    Driver::Options options{.group = {.members = members, .member = member, .slots = 2, .deadline = deadline}, .number = group};
    members_[member].driver = std::make_unique<Driver>(
        options, MakePlan,
        [members](const PlanSpec& plan, uint64_t bytes) -> std::shared_ptr<const plan::Schedule> {
          return MakeSchedule(plan, members, bytes);
        },
        Driver::Means{members_[member].flows.get(), &reducer_, &staging_[member]});
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
  // Until it is so, which must come.
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

TEST_F(GroupTest, SumsAreRightWithSeveralOperationsUnderWay) {
  std::mt19937_64 random(3);
  for (const uint32_t members : {2u, 3u, 5u}) {
    SCOPED_TRACE(members);
    Make(members);
    for (int operation = 0; operation < 20; ++operation) {
      const size_t count = operation % 5 == 4 ? 0 : random() % 6000;
      for (uint32_t member = 0; member < members; ++member) {
        Call(member, count);
        if (random() % 3 == 0) Turn();
      }
    }
    RunUntil([this] { return AllDone(); });
    ExpectSums();
    for (const Member& member : members_) EXPECT_EQ(member.driver->error(), "");
    members_.clear();
    for (const auto& flow : network_.flows()) EXPECT_TRUE(flow->send_closed && flow->receive_closed);
    network_ = FakeNetwork(members);
  }
}

TEST_F(GroupTest, AContributionMayBeTheResult) {
  Make(3);
  std::vector<std::vector<float>> vectors(3, std::vector<float>(5000, 0.5F));
  for (uint32_t member = 0; member < 3; ++member)
    ASSERT_TRUE(
        members_[member].driver->Call({vectors[member].data(), vectors[member].data(), 5000, DataType::kFloat32, RedOp::kSum}, now_));
  RunUntil([this] { return std::all_of(members_.begin(), members_.end(), [](const Member& member) { return member.driver->Done(0); }); });
  for (const auto& vector : vectors) EXPECT_EQ(vector, std::vector<float>(5000, 1.5F));
}

TEST_F(GroupTest, IsConnectedWhenAllMembersHearEachOther) {
  members_.resize(3);
  Start(0, 3);
  Start(1, 3);
  for (int i = 0; i < 100; ++i) Turn();
  EXPECT_FALSE(members_[0].driver->connected());
  EXPECT_FALSE(members_[1].driver->connected());
  Start(2, 3);
  RunUntil([this] { return AllConnected(); });
}

// It is done with all that it was asked for; others may be at their last operation still.
TEST_F(GroupTest, AMemberMayLeaveWhenItsOperationsAreDone) {
  for (int run = 0; run < 20; ++run) {
    network_ = FakeNetwork(static_cast<uint64_t>(run));
    Make(3);
    for (uint32_t member = 0; member < 3; ++member)
      for (int operation = 0; operation < 4; ++operation) Call(member, 4000);
    RunUntil([this] {
      for (Member& member : members_) {
        if (member.driver == nullptr) continue;
        EXPECT_EQ(member.driver->error(), "");
        const bool done = std::all_of(member.operations.begin(), member.operations.end(),
                                      [&](OperationId operation) { return member.driver->Done(operation); });
        if (done) member.driver.reset();
      }
      return std::all_of(members_.begin(), members_.end(), [](const Member& member) { return member.driver == nullptr; });
    });
    ExpectSums();
    members_.clear();
  }
}

TEST_F(GroupTest, WhoWaitsForAStampOfAMemberThatHasLeftFails) {
  Make(3);
  RunUntil([this] { return AllConnected(); });
  members_[0].driver.reset();
  // More than are stamped ahead.
  for (int operation = 0; operation < 20; ++operation) Call(1, 0);
  RunUntil([this] { return !members_[1].driver->error().empty(); });
  EXPECT_NE(members_[1].driver->error().find("has lost member 0"), std::string::npos) << members_[1].driver->error();
}

TEST_F(GroupTest, AReductionThatComesToNothingIsAnErrorOfAll) {
  Make(3);
  RunUntil([this] { return AllConnected(); });
  reducer_.broken = true;
  for (uint32_t member = 0; member < 3; ++member) Call(member, 1000);
  RunUntil([this] { return AllFailed(); });
  EXPECT_FALSE(AllDone());
  const auto told = [](const Member& member) { return member.driver->error().find("the reducer is broken") != std::string::npos; };
  EXPECT_TRUE(std::all_of(members_.begin(), members_.end(), told));
}

// As NCCL does not test any more after an error.
TEST_F(GroupTest, AFailureIsToldAlthoughNobodyPollsTheDriverAnyMore) {
  Make(3);
  RunUntil([this] { return AllConnected(); });
  Call(0, 1000);
  Call(1, 1000);
  Call(2, 1001);
  poll_failed_ = false;
  RunUntil([this] { return AllFailed(); });
}

TEST_F(GroupTest, AnotherCapacityChangesThePlanAndNoResult) {
  Make(4);
  for (int operation = 0; operation < 60; ++operation) {
    if (operation == 10) members_[2].driver->SetCapacity(1'000'000);
    if (operation == 10) members_[1].driver->SetCapacity(4'000'000);
    for (uint32_t member = 0; member < 4; ++member) Call(member, 3000);
    RunUntil([this] { return AllDone(); });
  }
  ExpectSums();
  // Flows of the degraded member have another weight than those of the others among themselves.
  const auto differs = [](const auto& flow) { return flow->weight != 1; };
  EXPECT_TRUE(std::any_of(network_.flows().begin(), network_.flows().end(), differs));
}

// What a member says of its rails comes before its word that it hears all others.
TEST_F(GroupTest, AGroupThatBeginsWithRailsLostHasItsPlanFromTheFirstOperationOn) {
  Make(4);
  const std::vector<uint64_t> capacities = {4'000'000, 3'000'000, 4'000'000, 4'000'000};
  for (uint32_t member = 0; member < 4; ++member) members_[member].driver->SetCapacity(capacities[member]);
  RunUntil([this] { return AllConnected(); });
  for (uint32_t member = 0; member < 4; ++member) Call(member, 3000);
  RunUntil([this] { return AllDone(); });
  ExpectSums();
  for (const Member& member : members_) {
    EXPECT_EQ(member.driver->newest_plan()->epoch, 1u);
    EXPECT_EQ(member.driver->newest_plan()->plan, MakePlan(capacities));
  }
}

// Those of the control messages keep to their rails.
TEST_F(GroupTest, FlowsGoByAllRailsWhileMembersDiffer) {
  Make(4);
  const auto dealt = [this] {
    return std::count_if(network_.flows().begin(), network_.flows().end(), [](const auto& flow) { return flow->dealt; });
  };
  const auto follows = [&](uint64_t first_bytes_per_s) {
    members_[2].driver->SetCapacity(first_bytes_per_s);
    for (int operation = 0; operation < 20; ++operation) {
      for (uint32_t member = 0; member < 4; ++member) Call(member, 3000);
      RunUntil([this] { return AllDone(); });
    }
    return dealt();
  };
  for (const uint32_t member : {0, 1, 3}) members_[member].driver->SetCapacity(4'000'000);
  EXPECT_EQ(follows(4'000'000), 0);
  const auto used = static_cast<std::ptrdiff_t>(network_.flows().size()) - 4 * 3;
  EXPECT_GE(follows(3'000'000), used);
  EXPECT_EQ(follows(4'000'000), 0);
}

TEST_F(GroupTest, MembersThatDifferFailWithOneLineEach) {
  Make(3);
  Call(0, 1000);
  Call(1, 1000);
  Call(2, 1001);
  RunUntil([this] { return AllFailed(); });
  for (const Member& member : members_) EXPECT_NE(member.driver->error().find("count 100"), std::string::npos) << member.driver->error();
  EXPECT_FALSE(members_[0].driver->Call({nullptr, nullptr, 1, DataType::kInt8, RedOp::kSum}, now_).has_value());
}

TEST_F(GroupTest, AWayThatIsGoneFailsAllMembers) {
  Make(3);
  RunUntil([this] { return AllConnected(); });
  for (uint32_t member = 0; member < 3; ++member) Call(member, 5000);
  // They have begun, so that they have flows to each other.
  RunUntil([this] { return members_[1].driver->newest_plan() != nullptr && members_[2].driver->newest_plan() != nullptr; });
  network_.Fail(1, 2, "R2CC: peer n2 is gone");
  RunUntil([this] { return AllFailed(); });
  for (const Member& member : members_)
    EXPECT_NE(member.driver->error().find("R2CC: peer n2 is gone"), std::string::npos) << member.driver->error();
}

TEST_F(GroupTest, AMemberThatNeverCallsIsNotWaitedForBeyondTheDeadline) {
  Make(3, 5 * kNanosPerSecond);
  Call(0, 1000);
  Call(1, 1000);
  const Nanos began = now_;
  RunUntil([this] { return AllFailed(); });
  EXPECT_GE(now_ - began, 5 * kNanosPerSecond);
  EXPECT_LT(now_ - began, 6 * kNanosPerSecond);
}

TEST_F(GroupTest, AMemberOfAGroupOfAnotherSizeFailsIt) {
  members_.resize(3);
  Start(0, 2);
  Start(1, 2);
  Start(2, 3);
  // It takes itself for one of three; the first two know each other already.
  RunUntil([this] { return !members_[0].driver->error().empty() && !members_[1].driver->error().empty(); });
  EXPECT_NE(members_[0].driver->error().find("has a group of 3 members, here 2"), std::string::npos) << members_[0].driver->error();
}

// What a stranger opens, with any first message.
class Strangers : public GroupTest {
 protected:
  void Open(const Bytes& first) {
    bytes_.push_back(first);
    FakeFlow* const flow = network_.Open(1, 0);
    flow->sends.push_back({bytes_.back().data(), bytes_.back().size(), {}});
  }
  Greeting Good() const { return {.group = kGroup, .members = 3, .member = 1, .slot = 1, .from_lane = 9, .to_lane = 9}; }

  std::deque<Bytes> bytes_;
};

TEST_F(Strangers, AFlowOfAnotherGroupIsLeftAlone) {
  Make(3);
  Greeting other = Good();
  other.group = kGroup + 1;
  Open(Encode(other));
  RunUntil([this] { return AllConnected(); });
  for (uint32_t member = 0; member < 3; ++member) Call(member, 100);
  RunUntil([this] { return AllDone(); });
  ExpectSums();
}

TEST_F(Strangers, WhatCannotBeAFlowOfTheGroupFailsIt) {
  Greeting bad[4] = {Good(), Good(), Good(), Good()};
  bad[0].member = 0;
  bad[1].member = 3;
  bad[2].slot = 2;
  bad[3].control = true;
  std::vector<Bytes> firsts;
  for (const Greeting& greeting : bad) firsts.push_back(Encode(greeting));
  firsts.push_back(Bytes(kGreetingBytes));
  firsts.push_back(Bytes(3));
  firsts.push_back(Encode(Good()));
  firsts.back()[2] = std::byte{0x7f};  // the version
  for (const Bytes& first : firsts) {
    network_ = FakeNetwork(5);
    Make(3);
    RunUntil([this] { return AllConnected(); });
    Open(first);
    RunUntil([this] { return AllFailed(); });
    EXPECT_EQ(members_[0].driver->error().find("a flow that cannot be one of this group: "), 0u) << members_[0].driver->error();
    members_.clear();
  }
}

TEST_F(Strangers, AFlowHasItsNameAlone) {
  Make(3);
  Open(Encode(Good()));
  Open(Encode(Good()));
  RunUntil([this] { return AllFailed(); });
  EXPECT_NE(members_[0].driver->error().find("two flows of one name"), std::string::npos) << members_[0].driver->error();
}

TEST_F(Strangers, AMessageThatClaimsToBeLongerThanItIsFailsTheGroup) {
  Make(3);
  RunUntil([this] { return AllConnected(); });
  Bytes message(sizeof(uint32_t));
  const uint32_t length = 1'000'000;
  std::memcpy(message.data(), &length, sizeof(length));
  for (const auto& flow : network_.flows())
    if (flow->from == 1 && flow->to == 0) flow->sends.push_back({message.data(), message.size(), {}});
  RunUntil([this] { return AllFailed(); });
  EXPECT_NE(members_[0].driver->error().find("a message of 1000000 bytes"), std::string::npos) << members_[0].driver->error();
}

TEST(Messages, NoneIsLongerThanTheirBound) {
  const uint32_t members = kMembersMax;
  EXPECT_LE(Encode(Message(Stamp{1, 0, 16, PlanFor(std::vector<uint64_t>(members, 1), kPieceBytes)})).size(), MessageBytesMax(members));
  EXPECT_LE(Encode(Message(Stamp{1, 0, 16, PlanFor(std::vector<uint64_t>(2, 1), kPieceBytes)})).size(), MessageBytesMax(2));
  EXPECT_LE(Encode(Message(Failure{std::string(10'000, 'x')})).size(), MessageBytesMax(2));
  EXPECT_EQ(Encode(Greeting{}).size(), kGreetingBytes);
}

}  // namespace
}  // namespace r2cc::collnet
