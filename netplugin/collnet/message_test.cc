#include "netplugin/collnet/message.h"

#include <gtest/gtest.h>

#include <random>

namespace r2cc::collnet {
namespace {

Stamp Sample() {
  Stamp stamp;
  stamp.epoch = 3;
  stamp.from = 16;
  stamp.through = 32;
  stamp.plan = PlanFor({3, 4, 4}, 65'536);
  return stamp;
}

TEST(MessageTest, ADecodedMessageEqualsTheEncodedOne) {
  std::string why;
  for (const Message& message :
       {Message(Sample()), Message(MemberState{1, 2, 12'500'000'000, {0, 2}}), Message(GroupFailure{"member 1 has lost member 2"})}) {
    const auto decoded = Decode(Encode(message), 3, &why);
    ASSERT_TRUE(decoded.has_value()) << why;
    EXPECT_EQ(*decoded, message);
  }
}

TEST(MessageTest, APlanFromAPeerIsCheckedBeforeItIsMade) {
  std::string why;
  Stamp stamp = Sample();
  EXPECT_FALSE(Decode(Encode(stamp), 4, &why).has_value());
  EXPECT_EQ(why, "its plan is none: shares for 3 of 4 members");
  stamp.plan.parts[1] += 1;
  EXPECT_FALSE(Decode(Encode(stamp), 3, &why).has_value());
  EXPECT_EQ(why, "its plan is none: shares that add up to 1048577, not 1048576");
  stamp = Sample();
  stamp.plan.kind = PlanSpec::Kind::kOptcc;
  stamp.plan.degraded = 1'000'000;
  EXPECT_FALSE(Decode(Encode(stamp), 3, &why).has_value());
}

TEST(MessageTest, TheStateOfAMemberIsChecked) {
  const auto refused = [](const MemberState& state) {
    std::string why;
    return Decode(Encode(state), 4, &why).has_value() ? "" : why;
  };
  EXPECT_EQ(refused({1, 1, 5, {0, 2, 3}}), "");
  EXPECT_EQ(refused({4, 1, 5, {}}), "it is of member 4 of 4");
  EXPECT_EQ(refused({1, 1, 5, {0, 4}}), "it names member 4 as one that 1 does not reach");
  EXPECT_NE(refused({1, 1, 5, {1}}), "");
  EXPECT_NE(refused({1, 1, 5, {2, 2}}), "");
  EXPECT_NE(refused({1, 1, 5, {2, 0}}), "");
}

TEST(MessageTest, AnotherReleaseIsNamed) {
  std::string why;
  Bytes bytes = Encode(Sample());
  bytes[2] = std::byte{9};
  EXPECT_FALSE(Decode(bytes, 3, &why).has_value());
  EXPECT_EQ(why, "its release uses version 9, this one 2: all ranks of a job need the same");
  Bytes offer = Encode(OperationOffer{});
  offer[2] = std::byte{9};
  EXPECT_EQ(Compare(offer, OperationOffer{}), "its release uses version 9, this one 2: all ranks of a job need the same");
}

// Cut anywhere, longer, or with any byte changed: refused, or something that may be said.
TEST(MessageTest, RubbishIsRefused) {
  std::mt19937_64 random(1);
  std::string why;
  for (const Message& message : {Message(Sample()), Message(MemberState{1, 2, 5, {0}}), Message(GroupFailure{"text"})}) {
    const Bytes bytes = Encode(message);
    for (size_t length = 0; length < bytes.size(); ++length) {
      EXPECT_FALSE(Decode(std::span(bytes).first(length), 3, &why).has_value()) << length;
      EXPECT_NE(why, "");
    }
    Bytes longer = bytes;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(Decode(longer, 3, &why).has_value());
    for (int i = 0; i < 20'000; ++i) {
      Bytes changed = bytes;
      changed[random() % changed.size()] = static_cast<std::byte>(random());
      const auto decoded = Decode(changed, 3, &why);
      if (!decoded.has_value()) {
        EXPECT_NE(why, "");
      } else if (const auto* stamp = std::get_if<Stamp>(&*decoded)) {
        EXPECT_EQ(CheckPlanSpec(stamp->plan, 3), "");
      } else if (const auto* state = std::get_if<MemberState>(&*decoded)) {
        EXPECT_TRUE(state->member < 3 && state->unreachable.size() < 3);
        for (const uint32_t other : state->unreachable) EXPECT_TRUE(other < 3 && other != state->member);
      } else if (const auto* failure = std::get_if<GroupFailure>(&*decoded)) {
        for (const char c : failure->text) EXPECT_TRUE(c >= 0x20 && c <= 0x7e);
      }
    }
  }
}

TEST(MessageTest, AFailureIsOnePrintableLine) {
  std::string why;
  const auto decoded = Decode(Encode(GroupFailure{"x\n\x1b[31my" + std::string(5000, 'z')}), 3, &why);
  ASSERT_TRUE(decoded.has_value());
  const std::string text = std::get<GroupFailure>(*decoded).text;
  EXPECT_EQ(text.substr(0, 8), "x??[31my");
  EXPECT_EQ(text.size(), 400u);
}

TEST(MessageTest, AnOfferHasAllInWhichMembersMayDiffer) {
  const OperationOffer ours{7, 2, 100, abi::DataType::kFloat32, abi::RedOp::kSum};
  EXPECT_EQ(Encode(ours).size(), kOfferBytes);
  EXPECT_EQ(Compare(Encode(ours), ours), "");
  OperationOffer theirs = ours;
  theirs.operation = 8;
  EXPECT_EQ(Compare(Encode(theirs), ours), "operation 8, here 7");
  theirs = ours;
  theirs.epoch = 3;
  EXPECT_EQ(Compare(Encode(theirs), ours), "plan 3, here 2");
  theirs = ours;
  theirs.count = 99;
  theirs.type = abi::DataType::kFloat16;
  theirs.op = abi::RedOp::kMax;
  EXPECT_EQ(Compare(Encode(theirs), ours), "count 99, here 100; type 6, here 7; op 2, here 0");
  EXPECT_NE(Compare(Bytes(kOfferBytes), ours), "");
  EXPECT_NE(Compare({}, ours), "");
}

}  // namespace
}  // namespace r2cc::collnet
