#include "netplugin/transport/verbs/link_core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "netplugin/transport/verbs/core_ends.h"

namespace r2cc::net::verbs {
namespace {

TEST_F(LinkCoreTest, ALongFrameComesWhole) {
  JoinBoth();
  FlowReport frame{.flow = 5, .placed_through = 9, .grants = true};
  for (uint64_t i = 0; i < 1000; ++i) frame.capacities.push_back(i * 77);
  Send(0, frame);
  Send(0, frames::Ping{.number = 4});
  LookFor(5 * kNanosPerMs);
  ASSERT_EQ(ends_[1].frames.size(), 2u);
  EXPECT_EQ(std::get<FlowReport>(ends_[1].frames[0]).capacities, frame.capacities);
  EXPECT_EQ(std::get<frames::Ping>(ends_[1].frames[1]).number, 4u);
}

TEST_F(LinkCoreTest, AnAcceptorSpeaksWhenItWasSpokenTo) {
  JoinBoth();
  Send(1, frames::Ping{.number = 1});
  EXPECT_FALSE(ends_[1].core->flushed());
  Send(0, frames::Ping{.number = 2});
  LookFor(5 * kNanosPerMs);
  EXPECT_TRUE(ends_[1].core->flushed());
  ASSERT_EQ(ends_[0].frames.size(), 1u);
  EXPECT_EQ(std::get<frames::Ping>(ends_[0].frames[0]).number, 1u);
}

// An initiator whose answer was lost, or who is gone, says nothing, and no error does.
TEST_F(LinkCoreTest, AnInitiatorThatNeverSpeaksIsGivenUp) {
  JoinBoth();
  LookFor(4900 * kNanosPerMs);
  EXPECT_TRUE(ends_[1].troubles.empty());
  LookFor(200 * kNanosPerMs);
  EXPECT_EQ(ends_[1].troubles, std::vector{EvidenceCause::kSilence});
  EXPECT_TRUE(ends_[0].troubles.empty());
}

TEST_F(LinkCoreTest, QueuedRepeatsCostNoMemory) {
  JoinBoth();
  // Also what is long: regions and their answers.
  frames::RegionAnnounced region{};
  region.region = std::make_shared<Region>(Region{1, 1, 0x10000, 4096, {}});
  for (uint64_t i = 0; i < 1000; ++i) {
    Send(1, frames::Ping{.number = i});
    Send(1, region);
    Send(1, frames::RegionKnown{.region = 1, .generation = 1});
  }
  Send(1, frames::RailUp{.rail = 6});
  Send(0, frames::Ping{});
  LookFor(20 * kNanosPerMs);
  ASSERT_LT(ends_[0].frames.size(), 300u);
  EXPECT_EQ(TypeOf(ends_[0].frames.back()), FrameType::kRailUp);
  // And they go again once there is no backlog.
  Send(1, frames::Ping{.number = 7777});
  LookFor(5 * kNanosPerMs);
  EXPECT_EQ(std::get<frames::Ping>(ends_[0].frames.back()).number, 7777u);
}

// What was said arrives, and nothing more can be said.
TEST_F(LinkCoreTest, ADeviceThatReportsNothingIsTroubleOnceFramesWait) {
  JoinBoth();
  fabric_.StallDevice(0, "mlx5_0", FakeStall::kCompletesNothing);
  Send(0, frames::Ping{});
  LookFor(20 * kNanosPerSecond);
  EXPECT_TRUE(ends_[0].troubles.empty()) << "nothing waits";
  for (uint32_t i = 0; i < kFrameSlots; ++i) Send(0, frames::Ping{});
  LookFor(4 * kNanosPerSecond);
  EXPECT_EQ(ends_[1].frames.size(), kFrameSlots);
  EXPECT_TRUE(ends_[0].troubles.empty()) << "retries may take as long";
  LookFor(2 * kNanosPerSecond);
  EXPECT_EQ(ends_[0].troubles, std::vector{EvidenceCause::kSilence});
}

TEST_F(LinkCoreTest, MoreThanThereIsCreditForComesInOrder) {
  JoinBoth();
  for (uint64_t i = 0; i < 1000; ++i) Send(0, frames::RailUp{.rail = i});
  LookFor(50 * kNanosPerMs);
  ASSERT_EQ(ends_[1].frames.size(), 1000u);
  for (uint64_t i = 0; i < 1000; ++i) EXPECT_EQ(std::get<frames::RailUp>(ends_[1].frames[i]).rail, i);
  EXPECT_TRUE(ends_[0].troubles.empty() && ends_[1].troubles.empty());
}

// A grant costs the other end neither a receive nor a completion.
TEST_F(LinkCoreTest, GrantsAndAcknowledgementsGoAsRecords) {
  JoinBoth();
  Send(0, frames::Ping{});
  LookFor(5 * kNanosPerMs);
  const auto before = ends_[0].verbs->counts().completions;
  for (MessageId message = 0; message < 1000; ++message) {
    Send(1, FlowReport{.flow = 5, .placed_through = message, .grants = true, .capacities = {message + 77}});
    LookFor(2 * kNanosPerMs);
    ASSERT_EQ(ends_[0].frames.size(), message + 1);
    EXPECT_EQ(std::get<FlowReport>(ends_[0].frames.back()).placed_through, message);
    EXPECT_EQ(std::get<FlowReport>(ends_[0].frames.back()).capacities, std::vector<uint64_t>{message + 77});
  }
  Send(1, FlowReport{.flow = 5, .placed_through = 1000});
  LookFor(2 * kNanosPerMs);
  EXPECT_EQ(TypeOf(ends_[0].frames.back()), FrameType::kAck);
  // What it was told of is its own words on what it has read.
  EXPECT_LE(ends_[0].verbs->counts().completions - before, 1000 / (kSlots / 2) + 1);
  EXPECT_TRUE(ends_[0].troubles.empty() && ends_[1].troubles.empty());
}

// An initiator that looks at nothing for a while: its ring is full, and frames wait for credit. All of it is heard in the end.
TEST_F(LinkCoreTest, GrantsGoAsFramesWhenTheRingIsFull) {
  JoinBoth();
  Send(0, frames::Ping{});
  LookFor(5 * kNanosPerMs);
  constexpr FlowId kFlows = 2 * kSlots;
  for (FlowId flow = 1; flow <= kFlows; ++flow)
    Send(1, FlowReport{.flow = flow, .placed_through = 0, .grants = true, .capacities = {flow}});
  for (FlowId flow = 1; flow <= kFlows; ++flow)
    Send(1, FlowReport{.flow = flow, .placed_through = 0, .grants = true, .capacities = {flow, flow}});
  LookFor(50 * kNanosPerMs);
  std::map<FlowId, size_t> granted;
  for (const Frame& frame : ends_[0].frames)
    if (const auto* const report = std::get_if<FlowReport>(&frame))
      granted[report->flow] = std::max(granted[report->flow], report->capacities.size());
  EXPECT_EQ(granted.size(), kFlows);
  for (const auto& [flow, messages] : granted) EXPECT_EQ(messages, 2u) << flow;
  EXPECT_TRUE(ends_[1].core->flushed());
  EXPECT_TRUE(ends_[0].troubles.empty() && ends_[1].troubles.empty());
}

// Its ring says the second half before it has heard the first, which is a frame.
TEST_F(LinkCoreTest, ARecordThatOvertakesItsFrameWaits) {
  JoinBoth();
  Send(0, frames::Ping{});
  LookFor(5 * kNanosPerMs);
  FlowReport grant{.flow = 5, .placed_through = 0, .grants = true};
  for (uint64_t i = 0; i < kMessagesPerFlow + 1; ++i) grant.capacities.push_back(100 + i);
  ends_[1].core->Queue(grant);
  grant.placed_through = 2;
  grant.capacities.erase(grant.capacities.begin(), grant.capacities.begin() + 2);
  grant.capacities.push_back(9);
  Send(1, grant);
  for (int i = 0; i < 5000; ++i) {
    time_.RunFor(1'000);
    for (CoreEnd& end : ends_) end.core->Look();
  }
  ASSERT_EQ(TypeOf(ends_[0].frames.back()), FrameType::kGrant);
  EXPECT_EQ(std::get<FlowReport>(ends_[0].frames.back()).placed_through, 2u);
  EXPECT_EQ(std::get<FlowReport>(ends_[0].frames.back()).capacities, grant.capacities);
  EXPECT_TRUE(ends_[0].troubles.empty());
}

TEST_F(LinkCoreTest, CreditThatIsBackIsReported) {
  JoinBoth();
  const uint8_t byte = 1;
  for (uint32_t i = 0; i < kReceives; ++i) {
    while (ends_[0].core->pair()->room() == 0 || !ends_[0].core->pair()->CanSendControl()) {
      time_.RunFor(kNanosPerMs);
      ends_[0].core->Look();
    }
    ASSERT_EQ(ends_[0].core->pair()->SendControl(1, std::span(&byte, 1)), 0);
  }
  EXPECT_EQ(ends_[0].core->pair()->credit(), 0u);
  const int before = ends_[0].credited;
  LookFor(20 * kNanosPerMs);
  EXPECT_EQ(ends_[0].credited, before + 1);
}

TEST_F(LinkCoreTest, AnUnknownControlMessageIsTroubleOnce) {
  JoinBoth();
  const uint8_t bytes[] = {1, 2, 3};
  ASSERT_EQ(ends_[0].core->pair()->SendControl(9, bytes), 0);
  Send(0, frames::Ping{});
  LookFor(5 * kNanosPerMs);
  EXPECT_EQ(ends_[1].troubles, std::vector{EvidenceCause::kGarbled});
  EXPECT_TRUE(ends_[1].frames.empty());
}

TEST_F(LinkCoreTest, AFrameOfAnotherSessionIsTrouble) {
  JoinBoth(kTag + 1);
  Send(0, frames::Ping{});
  LookFor(5 * kNanosPerMs);
  EXPECT_EQ(ends_[1].troubles, std::vector{EvidenceCause::kGarbled});
  EXPECT_TRUE(ends_[1].frames.empty());
}

TEST_F(LinkCoreTest, PartsWithoutAnEndAreTrouble) {
  JoinBoth();
  const std::vector<uint8_t> part(kFrameSlotBytes - 8, 1);
  for (size_t bytes = 0; bytes <= kPacketBytesMax && ends_[1].troubles.empty(); bytes += part.size()) {
    while (!ends_[0].core->pair()->CanSendControl()) LookFor(kNanosPerMs);
    ASSERT_EQ(ends_[0].core->pair()->SendControl(1, part), 0);
  }
  LookFor(5 * kNanosPerMs);
  EXPECT_EQ(ends_[1].troubles, std::vector{EvidenceCause::kGarbled});
}

TEST_F(LinkCoreTest, AnOtherLinkLayerIsRefusedWithALine) {
  Make(0);
  Make(1);
  Offer offer = ends_[1].core->pair()->offer();
  offer.address.link_layer = LinkLayer::kInfiniBand;
  ends_[0].core->Join(offer);
  time_.RunFor(kNanosPerMs);
  EXPECT_EQ(ends_[0].troubles, std::vector{EvidenceCause::kLinkDown});
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_NE(lines_[0].find("link layer"), std::string::npos) << lines_[0];
}

TEST_F(LinkCoreTest, ASmallerMtuAtOneEndIsTheLinks) {
  fabric_.port({1, "mlx5_0", 1})->info.mtu_bytes = 512;
  JoinBoth();
  Send(0, frames::Ping{.number = 3});
  LookFor(5 * kNanosPerMs);
  EXPECT_EQ(ends_[1].frames.size(), 1u);
  ASSERT_EQ(lines_.size(), 2u) << "each end says it, once";
  EXPECT_NE(lines_[0].find("the MTU is 1024 here and 512 at the peer; the link uses 512"), std::string::npos) << lines_[0];
  EXPECT_NE(lines_[1].find("the MTU is 512 here and 1024 at the peer; the link uses 512"), std::string::npos) << lines_[1];
}

// A site's traffic class, service level, partition key and retries are those of each queue pair.
TEST_F(LinkCoreTest, ASitesSettingsAreTheLinks) {
  for (CoreEnd& end : ends_) end.shared.site = {.traffic_class = 106, .service_level = 3, .timeout = 20, .retry_cnt = 5};
  JoinBoth();
  for (const CoreEnd& end : ends_) {
    EXPECT_EQ(end.faulty->receive.path.traffic_class, 106);
    EXPECT_EQ(end.faulty->receive.path.service_level, 3);
    EXPECT_EQ(end.faulty->send.timeout, 20);
    EXPECT_EQ(end.faulty->send.retry_cnt, 5);
  }
}

TEST_F(LinkCoreTest, ACommunicatorsTrafficClassIsTheLinks) {
  for (CoreEnd& end : ends_) EXPECT_EQ(end.shared.traffic_class.Named(104, end.shared.site), "");
  JoinBoth();
  for (const CoreEnd& end : ends_) {
    EXPECT_EQ(end.faulty->receive.path.traffic_class, 104);
    EXPECT_EQ(end.faulty->receive.path.service_level, 104);
  }
}

TEST_F(LinkCoreTest, ADeviceThatIsLostIsTroubleAndTheCloseEnds) {
  JoinBoth();
  fabric_.LoseDevice(1, "mlx5_0");
  ends_[1].shared.rails[0].device()->ReadEvents([](uint8_t) {});
  EXPECT_EQ(ends_[1].troubles, std::vector{EvidenceCause::kLinkDown});
  EXPECT_FALSE(ends_[1].core->Close());
  time_.RunFor(100 * kNanosPerMs);
  EXPECT_EQ(ends_[1].closed, std::vector{true});
}

// Packets that are late find nobody: the device of the fake gives numbers that are free to the next who asks.
TEST_F(LinkCoreTest, TheSuccessorHasAnotherNumber) {
  JoinBoth();
  for (int host = 0; host < 2; ++host) {
    CoreEnd& end = ends_[host];
    uint32_t number = end.core->pair()->offer().number;
    for (int i = 0; i < 3; ++i) {
      EXPECT_FALSE(end.core->Close());
      time_.RunFor(100 * kNanosPerMs);
      ASSERT_EQ(end.closed.size(), static_cast<size_t>(i) + 1);
      Make(host);
      EXPECT_NE(std::exchange(number, end.core->pair()->offer().number), end.core->pair()->offer().number);
    }
    end.closed.clear();
  }
}

TEST_F(LinkCoreTest, ACallThatFailsOnceLeavesTheSuccessorAnotherNumber) {
  JoinBoth();
  const uint32_t before = ends_[1].core->pair()->offer().number;
  EXPECT_FALSE(ends_[1].core->Close());
  time_.RunFor(100 * kNanosPerMs);
  ends_[1].faulty->FailCall(Call::kCreateQueuePair, 2, EAGAIN);
  Make(1);
  EXPECT_EQ(ends_[1].faulty->injected(), 1u);
  EXPECT_NE(ends_[1].core->pair()->offer().number, before);
  ends_[1].closed.clear();
}

// Another link took the number meanwhile, so that the device gave the next one out. It is free again.
TEST_F(LinkCoreTest, OnlyTheNumberOfTheOneBeforeIsAvoided) {
  JoinBoth();
  const uint32_t first = ends_[1].core->pair()->offer().number;
  for (const uint32_t expected : {first + 1, first}) {
    EXPECT_FALSE(ends_[1].core->Close());
    time_.RunFor(100 * kNanosPerMs);
    Make(1);
    EXPECT_EQ(ends_[1].core->pair()->offer().number, expected);
  }
  ends_[1].closed.clear();
}

TEST_F(LinkCoreTest, AfterItsCloseNothingIsReported) {
  JoinBoth();
  Send(0, frames::Ping{});
  EXPECT_FALSE(ends_[1].core->Close());
  EXPECT_EQ(ends_[1].core->pair(), nullptr);
  LookFor(100 * kNanosPerMs);
  EXPECT_TRUE(ends_[1].frames.empty());
  EXPECT_TRUE(ends_[1].troubles.empty());
  EXPECT_EQ(ends_[1].closed, std::vector{true});
}

}  // namespace
}  // namespace r2cc::net::verbs
