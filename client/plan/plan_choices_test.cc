#include "client/plan/plan_choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace r2cc::client {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr uint32_t kRails = 4;

// Node 1 has lost this many rails.
v1::ExplainPlanReply Nodes(uint32_t nodes, uint32_t lost, v1::NicState state = v1::FAILED) {
  v1::ExplainPlanReply reply;
  for (uint32_t node = 0; node < nodes; ++node)
    for (uint32_t rail = 0; rail < kRails; ++rail) {
      const bool is_lost = node == 1 && rail < lost;
      v1::PlannedNic* const planned = reply.add_reasons()->mutable_planned();
      planned->set_node("n" + std::to_string(node));
      planned->set_nic("rail" + std::to_string(rail));
      planned->set_state(is_lost ? state : v1::HEALTHY);
      planned->set_weight_permille(is_lost ? 0 : 1000);
    }
  return reply;
}

TEST(PlanChoices, TheSeatIsNextToBalanceAndCollNet) {
  EXPECT_EQ(FormatAllReduce(Nodes(4, 2), {}),
            R"(AllReduce of 256 MiB among 4 nodes with 1 GPU each, over the ring without a fault; r2ccctl plan simulate has other sizes

ALLREDUCE       TO RING  NOTE
balance            2.00  NCCL's ring over the rails that are left
collnet, optcc     1.38  NCCL_COLLNET_ENABLE=1
seat               1.42  n1 has a free seat in NCCL's tree; 0.70 of NCCL's own time, from 31.1 MiB on
)");
}

TEST(PlanChoices, AMemberWithoutGainDeclines) {
  EXPECT_THAT(FormatAllReduce(Nodes(2, 2), {}), HasSubstr("the tree of two nodes has no slack: declines"));
  EXPECT_THAT(FormatAllReduce(Nodes(4, 1), {}), HasSubstr("no seat gains 3 % over NCCL's own choice: declines"));
  EXPECT_THAT(FormatAllReduce(Nodes(5, 2), {}), HasSubstr("n1 has a free seat in NCCL's tree; 0.66 of NCCL's own time"));
  EXPECT_THAT(FormatAllReduce(Nodes(7, 1), {}), HasSubstr("n1 has a free seat in NCCL's tree; 0.92 of NCCL's own time"));
}

TEST(PlanChoices, WithoutALossThereIsNothingToChoose) {
  EXPECT_EQ(FormatAllReduce(Nodes(4, 0), {}), "");
  EXPECT_EQ(FormatAllReduce(Nodes(1, 2), {}), "");
  EXPECT_EQ(FormatAllReduce(Nodes(4, kRails), {}), "");
  EXPECT_EQ(FormatAllReduce(Nodes(4, 2, v1::UNCABLED), {}), "");
  EXPECT_EQ(FormatAllReduce({}, {}), "");
}

// A node whose NICs differ is sound, and its lighter NIC is no loss.
TEST(PlanChoices, UnequalNicsAreNoLoss) {
  v1::ExplainPlanReply reply = Nodes(4, 0);
  reply.mutable_reasons(5)->mutable_planned()->set_weight_permille(100);
  EXPECT_EQ(FormatAllReduce(reply, {}), "");
  reply.mutable_reasons(5)->mutable_planned()->set_state(v1::DEGRADED);
  EXPECT_THAT(FormatAllReduce(reply, {}), Not(HasSubstr("free seat")));
}

}  // namespace
}  // namespace r2cc::client
