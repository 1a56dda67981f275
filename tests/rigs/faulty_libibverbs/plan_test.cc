#include "tests/rigs/faulty_libibverbs/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace r2cc::rig {
namespace {

TEST(PlanTest, EachEntryIsAFault) {
  std::vector<Fault> faults;
  std::string error;
  ASSERT_TRUE(ParseFaults("completion:3:12,post_send:5:11,post_receive:9:12,pair_state:40:6", &faults, &error)) << error;
  ASSERT_EQ(faults.size(), 4u);
  EXPECT_EQ(faults[0].kind, FaultKind::kCompletion);
  EXPECT_EQ(faults[0].number, 3u);
  EXPECT_EQ(faults[0].value, 12);
  EXPECT_EQ(faults[1].kind, FaultKind::kPostSend);
  EXPECT_EQ(faults[2].kind, FaultKind::kPostReceive);
  EXPECT_EQ(faults[3].kind, FaultKind::kPairState);
}

TEST(PlanTest, NothingIsNoFault) {
  std::vector<Fault> faults;
  std::string error;
  EXPECT_TRUE(ParseFaults("", &faults, &error));
  EXPECT_TRUE(faults.empty());
}

TEST(PlanTest, UnreadableInputIsNamed) {
  for (const char* const text :
       {"poll:1:1", "completion:0:12", "completion:3", "completion:3:", "completion:3:x", "completion:3:12:1", ",", "completion:-1:1"}) {
    std::vector<Fault> faults;
    std::string error;
    EXPECT_FALSE(ParseFaults(text, &faults, &error)) << text;
    EXPECT_THAT(error, testing::HasSubstr("KIND:NUMBER:VALUE"));
  }
}

}  // namespace
}  // namespace r2cc::rig
