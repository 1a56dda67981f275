// When the sender of a flow is told what.

#include "netplugin/flow/recv_flows.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace r2cc::net {
namespace {

constexpr FlowId kFlow = 1;
constexpr LinkId kHome = 0;
constexpr PathEpoch kPath = 0;
constexpr Nanos kMuchLater = kNanosPerSecond;
constexpr bool kGrants = true, kAcknowledges = false;

struct RecvFlowsTest : testing::Test, FlowReportSink {
  RecvFlowsTest() {
    flows.set_whole(true);
    flow = flows.Open(kFlow, kHome);
  }

  void Post() {
    flow->ledger.Post(buffer, sizeof(buffer));
    flows.Touch(flow);
  }
  void Place(bool eager = false) {
    std::byte* to = nullptr;
    const Chunk chunk{kFlow, next, sizeof(buffer), 128, 0, nullptr, sizeof(buffer), eager};
    ASSERT_EQ(flow->ledger.Begin(chunk, kPath, &to), RecvLedger::Verdict::kPlace);
    ASSERT_TRUE(flow->ledger.Finish(next++, 0, kPath));
    flows.Touch(flow);
  }
  bool Report(FlowReport report, LinkId home) override {
    EXPECT_EQ(home, kHome);
    if (has_way) reports.push_back(std::move(report));
    return has_way;
  }
  // The reports that leave now.
  std::vector<FlowReport> TakeReports(Nanos now) {
    flows.Flush(now);
    return std::exchange(reports, {});
  }
  // One report leaves now; `placed` messages are done by it.
  FlowReport OneReport(Nanos now, bool grants, uint64_t placed) {
    std::vector<FlowReport> taken = TakeReports(now);
    EXPECT_EQ(taken.size(), 1u);
    if (taken.size() != 1) return {};
    EXPECT_EQ(taken[0].flow, kFlow);
    EXPECT_EQ(taken[0].grants, grants);
    EXPECT_EQ(taken[0].placed_through, placed);
    return std::move(taken[0]);
  }
  // Posts `messages` receives that the sender hears of.
  void Granted(int messages) {
    for (int i = 0; i < messages; ++i) Post();
    ASSERT_EQ(TakeReports(1).size(), 1u);
  }

  char buffer[16];
  bool has_way = true;
  std::vector<FlowReport> reports;
  RecvFlows flows{this};
  RecvFlows::Flow* flow = nullptr;
  MessageId next = 0;
};

TEST_F(RecvFlowsTest, TheFirstGrantsAreReportedOneByOne) {
  for (uint64_t posted = 1; posted <= 2; ++posted) {
    Post();
    EXPECT_EQ(OneReport(1, kGrants, 0).capacities.size(), posted);
  }
}

TEST_F(RecvFlowsTest, ASenderWithGrantsGetsTwoLargeMessagesAndNewBuffersInOneReport) {
  Granted(4);
  Place();
  EXPECT_TRUE(TakeReports(1).empty());
  Post();
  EXPECT_TRUE(TakeReports(1).empty());
  Place();
  EXPECT_EQ(OneReport(1, kGrants, 2).capacities.size(), 3u);
}

TEST_F(RecvFlowsTest, WhileARailIsMissingEachLargeMessageIsReportedAtOnce) {
  Granted(4);
  flows.set_whole(false);
  Place();
  EXPECT_EQ(TakeReports(1).size(), 1u);
  Post();
  EXPECT_EQ(TakeReports(1).size(), 1u);
}

TEST_F(RecvFlowsTest, AHeldBackAcknowledgementIsReportedWhenNoMoreMessagesCome) {
  Granted(4);
  Place();
  EXPECT_TRUE(TakeReports(5).empty());
  OneReport(5 + kNanosPerMs, kAcknowledges, 1);
  EXPECT_TRUE(TakeReports(kMuchLater).empty());
}

TEST_F(RecvFlowsTest, TheLastMessageThatWasPostedIsAcknowledgedAtOnce) {
  Granted(1);
  Place();
  OneReport(1, kAcknowledges, 1);
}

TEST_F(RecvFlowsTest, ASenderShortOfGrantsGetsANewOneAtOnce) {
  Granted(2);
  Place();
  EXPECT_TRUE(TakeReports(1).empty());
  Post();
  OneReport(1, kGrants, 1);
}

TEST_F(RecvFlowsTest, ASenderThatAsksGetsAReportAtOnce) {
  Granted(4);
  Post();
  EXPECT_TRUE(TakeReports(1).empty());
  flow->wanted_through = 5;
  flows.Touch(flow);
  EXPECT_EQ(TakeReports(1).size(), 1u);
}

// After small messages nobody hurries to grant.
TEST_F(RecvFlowsTest, ASenderThatAskedBeforeTheBufferWasPostedGetsAReportAtOnce) {
  Granted(1);
  Place(true);
  EXPECT_EQ(TakeReports(kMuchLater).size(), 0u);
  EXPECT_EQ(TakeReports(2 * kMuchLater).size(), 1u);
  flow->wanted_through = 3;
  flows.Touch(flow);
  EXPECT_TRUE(TakeReports(2 * kMuchLater).empty()) << "there is nothing to tell";
  for (uint64_t posted = 1; posted <= 2; ++posted) {
    Post();
    EXPECT_EQ(TakeReports(2 * kMuchLater).size(), 1u);
  }
  Post();
  EXPECT_TRUE(TakeReports(2 * kMuchLater).empty()) << "for this one nobody asked";
  EXPECT_EQ(TakeReports(2 * kMuchLater + kNanosPerMs).size(), 1u) << "but large messages may come";
}

TEST_F(RecvFlowsTest, AReportThatMayBeLostIsRepeatedAtOnce) {
  Granted(4);
  Place();
  EXPECT_TRUE(TakeReports(1).empty());
  flows.RepeatReports();
  OneReport(1, kGrants, 1);
}

TEST_F(RecvFlowsTest, AReportWithoutALinkIsSentWhenThereIsOne) {
  has_way = false;
  Post();
  EXPECT_TRUE(TakeReports(1).empty());
  EXPECT_TRUE(TakeReports(2).empty());
  has_way = true;
  EXPECT_EQ(OneReport(3, kGrants, 0).capacities.size(), 1u);
}

TEST_F(RecvFlowsTest, ASenderAwaitsALargeMessageAndNotASmallOne) {
  Post();
  Post();
  Place(/*eager=*/true);
  EXPECT_FALSE(flows.awaited());
  Place();
  EXPECT_TRUE(flows.awaited());
  // Whoever else has news in the meantime.
  EXPECT_EQ(flows.TakeChanged().size(), 1u);
  EXPECT_TRUE(flows.awaited());
  EXPECT_EQ(TakeReports(1).size(), 1u);
  EXPECT_FALSE(flows.awaited());
}

TEST_F(RecvFlowsTest, ASenderAwaitsTheAcknowledgementOfMostOfItsCredit) {
  constexpr uint32_t kLow = EagerWindowLowAt(kEagerWindow);
  for (uint32_t i = 0; i < kLow; ++i) {
    EXPECT_FALSE(flows.awaited()) << i;
    Post();
    Place(/*eager=*/true);
  }
  EXPECT_TRUE(flows.awaited());
}

TEST_F(RecvFlowsTest, ASenderAwaitsWhatItAskedForAndWhatMayBeLost) {
  Granted(1);
  Place(/*eager=*/true);
  flow->wanted_through = 2;
  EXPECT_TRUE(flows.awaited());
  flow->wanted_through = 1;
  EXPECT_FALSE(flows.awaited());
  flows.RepeatReports();
  EXPECT_TRUE(flows.awaited());
}

TEST_F(RecvFlowsTest, SmallMessagesWaitLongerAndInGreaterNumber) {
  Granted(4);
  for (int i = 0; i < 3; ++i) {
    Place(true);
    Post();
    EXPECT_TRUE(TakeReports(1 + i * kNanosPerMs).empty());
  }
  EXPECT_EQ(TakeReports(1 + 4 * kNanosPerMs).size(), 1u);
}

TEST_F(RecvFlowsTest, FindsTheOneFlowOfASlot) {
  FlowId found = 0;
  MessageId placed_through = 7;
  constexpr uint32_t kSlots = 16;
  ASSERT_TRUE(flows.FindBySlot(kFlow % kSlots, kSlots, &found, &placed_through));
  EXPECT_EQ(found, kFlow);
  EXPECT_EQ(placed_through, 0u);
  EXPECT_FALSE(flows.FindBySlot((kFlow + 1) % kSlots, kSlots, &found, &placed_through));
  flows.Open(kFlow + kSlots, kHome);
  EXPECT_FALSE(flows.FindBySlot(kFlow % kSlots, kSlots, &found, &placed_through)) << "two flows have it";
}

}  // namespace
}  // namespace r2cc::net
