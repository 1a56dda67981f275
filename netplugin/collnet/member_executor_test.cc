// One member, step by step; what groups do is in tests/collnet.
#include "netplugin/collnet/member_executor.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace r2cc::collnet {
namespace {

using abi::DataType;
using abi::RedOp;
using Kind = MemberAction::Kind;

constexpr Nanos kDeadline = 5 * kNanosPerSecond;

std::unique_ptr<MemberExecutor> Make(uint32_t member, uint32_t members = 2, Slot slots = 2, OperationId ahead = 4) {
  MemberExecutor::Options options;
  options.members = members;
  options.member = member;
  options.slots = slots;
  options.ahead = ahead;
  options.deadline = kDeadline;
  return std::make_unique<MemberExecutor>(
      options, [](const std::vector<uint64_t>& rates, const std::vector<bool>& reach_all) { return PlanFor(rates, 65'536, reach_all); },
      [members](const PlanSpec& plan, uint64_t bytes) { return MakeSchedule(plan, members, bytes); });
}

std::vector<MemberAction> Of(const std::vector<MemberAction>& actions, Kind kind) {
  std::vector<MemberAction> found;
  std::copy_if(actions.begin(), actions.end(), std::back_inserter(found), [&](const MemberAction& action) { return action.kind == kind; });
  return found;
}

// Everything that the two send each other arrives at once.
class Two {
 public:
  Two() { Settle(); }
  void Settle() {
    for (bool more = true; more;) {
      more = false;
      for (const uint32_t member : {0, 1}) {
        for (MemberAction& action : ends[member]->TakeActions()) {
          more = true;
          CarryOut(member, action);
          log[member].push_back(std::move(action));
        }
      }
    }
  }
  void CarryOut(uint32_t member, const MemberAction& action) {
    FlowName there = action.flow;
    there.peer = member;
    switch (action.kind) {
      case Kind::kMessage: ends[1 - member]->MessageReceived(member, action.message, 0); break;
      case Kind::kOffer: offers[1 - member][there] = action.message; break;
      case Kind::kExpect: expected[member].push_back(action.flow); break;
      case Kind::kReduce: ends[member]->ReduceDone(action.operation, action.block, 0); break;
      default: break;
    }
    for (const uint32_t to : {0, 1})
      std::erase_if(expected[to], [&](const FlowName& flow) {
        const auto offer = offers[to].find(flow);
        if (offer == offers[to].end()) return false;
        ends[to]->OfferReceived(flow, offer->second, 0);
        return true;
      });
  }

  std::map<FlowName, Bytes> offers[2];
  std::vector<FlowName> expected[2];
  std::unique_ptr<MemberExecutor> ends[2] = {Make(0), Make(1)};
  std::vector<MemberAction> log[2];
};

TEST(ExecutorTest, AMemberWithoutAStampBeginsNothing) {
  const auto executor = Make(1);
  EXPECT_EQ(executor->Call(64, DataType::kFloat32, RedOp::kSum, 0), 0u);
  EXPECT_TRUE(executor->TakeActions().empty());
  const Bytes stamp = Encode(Stamp{1, 0, 4, PlanFor({1, 1}, 65'536)});
  executor->MessageReceived(0, stamp, 0);
  const auto actions = executor->TakeActions();
  ASSERT_FALSE(actions.empty());
  EXPECT_EQ(actions[0].kind, Kind::kBegin);
  // A weight and an offer before anything is sent on a flow, and the offer is awaited before anything that is received.
  EXPECT_EQ(Of(actions, Kind::kWeight).size(), 1u);
  EXPECT_EQ(Of(actions, Kind::kOffer).size(), 1u);
  EXPECT_EQ(Of(actions, Kind::kExpect).size(), 1u);
  EXPECT_EQ(Of(actions, Kind::kSend).size(), 1u);
  EXPECT_EQ(Of(actions, Kind::kReceive).size(), 1u);
  EXPECT_EQ(Of(actions, Kind::kReceive)[0].place.area, Area::kStaging) << "what is to be added lands beside the vector";
  EXPECT_EQ(Of(actions, Kind::kSend)[0].place.area, Area::kContribution);
}

Stamp StampIn(const MemberAction& action) {
  std::string why;
  const auto message = Decode(action.message, 3, &why);
  EXPECT_TRUE(message.has_value() && std::holds_alternative<Stamp>(*message)) << why;
  return std::get<Stamp>(*message);
}

TEST(ExecutorTest, TheFirstStampUsesTheStatesOfMembersFromBeforeTheFirstCall) {
  const auto executor = Make(0, 3);
  executor->SetCapacity(100);
  executor->MessageReceived(1, Encode(MemberState{1, 1, 50, {}}), 0);
  executor->MessageReceived(2, Encode(MemberState{2, 1, 100, {}}), 0);
  EXPECT_TRUE(executor->TakeActions().empty()) << "what is stamped stands for ever";
  EXPECT_EQ(executor->newest_plan(), nullptr);
  executor->Call(64, DataType::kFloat32, RedOp::kSum, 0);
  const auto messages = Of(executor->TakeActions(), Kind::kMessage);
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0].message, messages[1].message);
  const Stamp stamp = StampIn(messages[0]);
  EXPECT_EQ(stamp.epoch, 1u);
  EXPECT_EQ(stamp.from, 0u);
  EXPECT_EQ(stamp.plan.parts, PlanFor({100, 50, 100}, 65'536).parts);
  EXPECT_EQ(*executor->newest_plan(), stamp);
}

TEST(ExecutorTest, MoreOperationsThanSlotsWait) {
  Two two;
  two.ends[0]->Call(64, DataType::kFloat32, RedOp::kSum, 0);
  for (int i = 0; i < 3; ++i) two.ends[1]->Call(64, DataType::kFloat32, RedOp::kSum, 0);
  two.Settle();
  EXPECT_EQ(Of(two.log[1], Kind::kBegin).size(), 2u);
  EXPECT_EQ(two.ends[1]->open(), 3u);
}

TEST(ExecutorTest, AnOperationOfNothingIsDoneWhenItsTurnHasCome) {
  Two two;
  two.ends[0]->Call(0, DataType::kFloat32, RedOp::kSum, 0);
  two.ends[1]->Call(0, DataType::kFloat32, RedOp::kSum, 0);
  two.Settle();
  ASSERT_EQ(Of(two.log[1], Kind::kDone).size(), 1u);
  EXPECT_EQ(two.ends[1]->open(), 0u);
}

TEST(ExecutorTest, MembersThatDifferFailWithOneLine) {
  Two two;
  two.ends[0]->Call(64, DataType::kFloat32, RedOp::kSum, 0);
  two.ends[1]->Call(64, DataType::kInt32, RedOp::kSum, 0);
  two.Settle();
  for (const uint32_t member : {0, 1}) {
    ASSERT_EQ(Of(two.log[member], Kind::kFail).size(), 1u);
    EXPECT_TRUE(two.ends[member]->failed());
    EXPECT_NE(two.ends[member]->error().find("do not do the same in operation 0: type"), std::string::npos) << two.ends[member]->error();
    EXPECT_FALSE(two.ends[member]->Call(64, DataType::kFloat32, RedOp::kSum, 0).has_value());
  }
}

TEST(ExecutorTest, AnInvalidMessageEndsTheGroupAndNotTheProcess) {
  const auto stamp = [](uint64_t epoch, OperationId from) { return Encode(Stamp{epoch, from, from + 4, PlanFor({1, 1, 1}, 65'536)}); };
  const std::vector<std::tuple<uint32_t, uint32_t, Bytes, std::string>> cases = {
      {0, 2, stamp(1, 0), "member 2 stamps operations, which only member 0 may"},
      {1, 0, stamp(1, 7), "member 0 stamps plan 1 for operations 7 up to 11 where plan 1 from operation 0 on is the next"},
      {2, 0, Encode(MemberState{1, 1, 5, {}}), "member 0 reports the state of member 1 to member 2"},
      {1, 0, Bytes(100), "a message of member 0: it is no message of a group"},
      {1, 0, {}, "a message of member 0: it is no message of a group"},
      {1, 0, Encode(Stamp{1, 0, 4, PlanFor({1, 1}, 65'536)}), "a message of member 0: its plan is none: shares for 2 of 3 members"},
  };
  for (const auto& [member, from, bytes, want] : cases) {
    const auto executor = Make(member, 3);
    executor->TakeActions();
    executor->MessageReceived(from, bytes, 0);
    EXPECT_EQ(executor->error(), want);
    const auto actions = executor->TakeActions();
    EXPECT_EQ(Of(actions, Kind::kMessage).size(), 2u) << "all others are told";
    EXPECT_EQ(Of(actions, Kind::kFail).size(), 1u);
    executor->MessageReceived(from, bytes, 0);
    executor->Tick(100 * kDeadline);
    EXPECT_TRUE(executor->TakeActions().empty()) << "once";
  }
}

TEST(ExecutorTest, AReceivedFailureIsNotSentOn) {
  const auto executor = Make(1, 3);
  executor->MessageReceived(2, Encode(GroupFailure{"member 2 has lost member 0: gone"}), 0);
  const auto actions = executor->TakeActions();
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(actions[0].kind, Kind::kFail);
  EXPECT_EQ(actions[0].text, "member 2 has lost member 0: gone");
}

TEST(ExecutorTest, TheDeadlineNamesTheMemberThatDidNotAnswer) {
  const auto executor = Make(1);
  executor->Tick(100 * kDeadline);
  EXPECT_FALSE(executor->failed()) << "nothing is called";
  executor->Call(64, DataType::kFloat32, RedOp::kSum, 100 * kDeadline);
  executor->Tick(101 * kDeadline - 1);
  EXPECT_FALSE(executor->failed());
  executor->Tick(101 * kDeadline);
  EXPECT_EQ(executor->error(), "operation 0 made no progress for 5000 ms: member 0 has not called it");

  Two two;
  two.ends[1]->Call(64, DataType::kFloat32, RedOp::kSum, 7);
  two.Settle();
  two.ends[1]->Tick(7 + kDeadline);
  EXPECT_EQ(two.ends[1]->error(), "operation 0 made no progress for 5000 ms: member 0 has not called it");
}

// What a member can carry is told once, and the plan changes after what is stamped.
TEST(ExecutorTest, CapacityIsSentWhenItChanges) {
  const auto executor = Make(1, 3);
  executor->SetCapacity(100);
  executor->SetCapacity(100);
  executor->SetCapacity(50);
  EXPECT_EQ(Of(executor->TakeActions(), Kind::kMessage).size(), 2u);

  const auto zero = Make(0, 3);
  zero->Call(64, DataType::kFloat32, RedOp::kSum, 0);
  zero->TakeActions();
  zero->MessageReceived(1, Encode(MemberState{1, 1, 50, {}}), 0);
  zero->MessageReceived(2, Encode(MemberState{2, 1, 100, {}}), 0);
  EXPECT_TRUE(zero->TakeActions().empty()) << "what is stamped stands until half of it is used up";
  for (int i = 0; i < 3; ++i) zero->Call(64, DataType::kFloat32, RedOp::kSum, 0);
  const auto messages = Of(zero->TakeActions(), Kind::kMessage);
  ASSERT_EQ(messages.size(), 2u);
  const Stamp stamp = StampIn(messages[0]);
  EXPECT_EQ(stamp.epoch, 2u);
  EXPECT_EQ(stamp.from, 5u) << "four ahead of the first call";
  EXPECT_EQ(stamp.plan.parts, PlanFor({100, 50, 100}, 65'536).parts);
}

TEST(ExecutorTest, AVectorThatIsTooLongIsNotTaken) {
  const auto executor = Make(0);
  EXPECT_FALSE(executor->Call(uint64_t{1} << 62, DataType::kFloat64, RedOp::kSum, 0).has_value());
  EXPECT_TRUE(executor->Call(8, DataType::kFloat64, RedOp::kSum, 0).has_value());
}

}  // namespace
}  // namespace r2cc::collnet
