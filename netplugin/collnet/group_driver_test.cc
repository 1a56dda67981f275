// Groups of drivers in one process, with real bytes.
#include "netplugin/collnet/group_driver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "netplugin/collnet/driver_world.h"

namespace r2cc::collnet {
namespace {

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

TEST_F(GroupTest, IsConnectedWhenAllMembersReceiveFromEachOther) {
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

// A receive that is outstanding when its sender closes is a line in each healthy run's log.
TEST_F(GroupTest, PostsNoReceiveAfterTheLastMessageOfAPeer) {
  Make(3);
  RunUntil([this] { return AllConnected(); });
  for (int i = 0; i < 50; ++i) Turn();
  members_[0].driver.reset();
  for (int i = 0; i < 50; ++i) network_.Move();
  for (uint32_t member : {1u, 2u}) members_[member].driver.reset();
  for (const auto& flow : network_.flows())
    if (flow->from == 0 && flow->sent > 0) {
      EXPECT_TRUE(flow->receives.empty()) << "of member " << flow->to;
    }
}

// A port that anybody may open flows to.
TEST_F(GroupTest, FlowsWithoutAGreetingAreBounded) {
  Make(2);
  constexpr int kFlows = 20'000;
  for (int i = 0; i < kFlows; ++i) network_.Open(1, 0);
  Turn();
  const auto refused = std::count_if(network_.flows().begin(), network_.flows().end(),
                                     [](const auto& flow) { return flow->to == 0 && flow->receive_closed; });
  EXPECT_GE(refused, kFlows - 4 * 4096);
  EXPECT_EQ(members_[0].driver->error(), "");
}

TEST_F(GroupTest, AMemberThatWaitsForAStampOfOneThatHasLeftFails) {
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
  const auto reports = [](const Member& member) { return member.driver->error().find("the reducer is broken") != std::string::npos; };
  EXPECT_TRUE(std::all_of(members_.begin(), members_.end(), reports));
}

// As NCCL does not test any more after an error.
TEST_F(GroupTest, AFailureIsReportedAlthoughNobodyPollsTheDriverAnyMore) {
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

// All of it is here that was sent, and yet the rest of the staging memory must not be added up.
TEST_F(GroupTest, AMessageThatIsTooShortIsAnErrorOfAllAndNoSum) {
  constexpr size_t kCount = 512;  // a piece
  Make(2);
  RunUntil([this] { return AllConnected(); });
  network_.Shorten(kCount * sizeof(int64_t) / 2);  // each adds up a half
  for (uint32_t member = 0; member < 2; ++member) Call(member, kCount);
  RunUntil([this] { return AllFailed(); });
  EXPECT_NE(members_[0].driver->error().find("it sent 2047 bytes of a message of 2048"), std::string::npos) << members_[0].driver->error();
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
class Greetings : public GroupTest {
 protected:
  void Open(const Bytes& first) {
    bytes_.push_back(first);
    FakeFlow* const flow = network_.Open(1, 0);
    flow->sends.push_back({bytes_.back().data(), bytes_.back().size(), {}});
  }
  Greeting Good() const { return {.group = kGroup, .members = 3, .member = 1, .slot = 1, .from_lane = 9, .to_lane = 9}; }

  std::deque<Bytes> bytes_;
};

TEST_F(Greetings, AFlowOfAnotherGroupIsLeftAlone) {
  Make(3);
  Greeting other = Good();
  other.group = kGroup + 1;
  Open(Encode(other));
  RunUntil([this] { return AllConnected(); });
  for (uint32_t member = 0; member < 3; ++member) Call(member, 100);
  RunUntil([this] { return AllDone(); });
  ExpectSums();
}

TEST_F(Greetings, AnInvalidGreetingFailsTheGroup) {
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

TEST_F(Greetings, AFlowHasItsNameAlone) {
  Make(3);
  Open(Encode(Good()));
  Open(Encode(Good()));
  RunUntil([this] { return AllFailed(); });
  EXPECT_NE(members_[0].driver->error().find("two flows of one name"), std::string::npos) << members_[0].driver->error();
}

TEST_F(Greetings, AMessageThatClaimsToBeLongerThanItIsFailsTheGroup) {
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
  EXPECT_LE(Encode(Message(GroupFailure{std::string(10'000, 'x')})).size(), MessageBytesMax(2));
  EXPECT_EQ(Encode(Greeting{}).size(), kGreetingBytes);
}

}  // namespace
}  // namespace r2cc::collnet
