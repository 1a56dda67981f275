// Which flow's chunks a link carries next, and when there is nothing to carry.

#include "netplugin/link/send_flows.h"

#include <gtest/gtest.h>

#include <array>
#include <tuple>

namespace r2cc::net {
namespace {

constexpr Carrier kCarrier = 7;
constexpr uint64_t kBytes = 16;

struct SendFlowsTest : testing::Test {
  SendFlows::Flow* Open() {
    SendFlows::Flow* flow = flows.Open();
    flow->ledger.set_eager_window(kEagerWindow);
    return flow;
  }
  void Post(SendFlows::Flow* flow) {
    flow->ledger.Post(buffer, sizeof(buffer));
    flows.Note(flow);
  }
  // The flow whose message goes next; 0 if there is none.
  FlowId Next() {
    Chunk chunk;
    return flows.Pull(shares, 0, kCarrier, &chunk) ? chunk.flow : 0;
  }

  const std::array<LinkShare, 1> shares{LinkShare{.usable = true, .weight_permille = 1000}};
  SendFlows flows{{.eager_bytes = kBytes}, StripeMode::kBalance};
  char buffer[kBytes] = {};
};

TEST_F(SendFlowsTest, NothingIsReadyAsSoonAsTheLastChunkIsTaken) {
  SendFlows::Flow* flow = Open();
  EXPECT_FALSE(flows.ready());
  Post(flow);
  Post(flow);
  EXPECT_TRUE(flows.ready());
  EXPECT_EQ(Next(), flow->id);
  EXPECT_TRUE(flows.ready());
  EXPECT_EQ(Next(), flow->id);
  EXPECT_FALSE(flows.ready());
  EXPECT_EQ(Next(), 0u);
  Post(flow);
  EXPECT_TRUE(flows.ready());
  EXPECT_EQ(Next(), flow->id);
}

TEST_F(SendFlowsTest, FlowsTakeTurnsAndWhoHasNothingLeftIsPassedBy) {
  SendFlows::Flow* a = Open();
  SendFlows::Flow* b = Open();
  SendFlows::Flow* c = Open();
  for (SendFlows::Flow* flow : {a, b, b, c, c}) Post(flow);
  EXPECT_EQ(Next(), a->id);
  const FlowId first = Next(), second = Next();
  EXPECT_EQ(first + second, b->id + c->id);
  EXPECT_NE(first, second);
  EXPECT_EQ(Next(), first);
  EXPECT_EQ(Next(), second);
  EXPECT_FALSE(flows.ready());
}

TEST_F(SendFlowsTest, AMessageGoesAtOnceWhereNothingIsAheadOfIt) {
  SendFlows::Flow* a = Open();
  SendFlows::Flow* b = Open();
  a->state = b->state = SendFlows::State::kOpen;
  Chunk chunk;
  Post(a);
  EXPECT_FALSE(flows.PostEagerly(b, buffer, kBytes, kCarrier, &chunk));
  EXPECT_EQ(Next(), a->id);
  std::ignore = flows.TakeChanged();
  ASSERT_TRUE(flows.PostEagerly(b, buffer, kBytes, kCarrier, &chunk));
  EXPECT_EQ(chunk.flow, b->id);
  EXPECT_FALSE(flows.ready());
  ASSERT_EQ(flows.TakeChanged().size(), 1u);
  b->state = SendFlows::State::kFailed;
  EXPECT_FALSE(flows.PostEagerly(b, buffer, kBytes, kCarrier, &chunk));
}

TEST_F(SendFlowsTest, WhatWasReclaimedIsReadyAgain) {
  SendFlows::Flow* flow = Open();
  Post(flow);
  EXPECT_EQ(Next(), flow->id);
  EXPECT_FALSE(flows.ready());
  EXPECT_EQ(flows.Reclaim(kCarrier, {}), kBytes);
  EXPECT_TRUE(flows.ready());
  EXPECT_EQ(Next(), flow->id);
}

TEST_F(SendFlowsTest, AFailedFlowIsNotCarried) {
  SendFlows::Flow* flow = Open();
  Post(flow);
  flows.Fail(flow, "gone");
  EXPECT_EQ(Next(), 0u);
  EXPECT_FALSE(flows.ready());
}

}  // namespace
}  // namespace r2cc::net
