#include "netplugin/link/link_demand.h"

#include <gtest/gtest.h>

#include <vector>

#include "netplugin/link/send_session.h"

namespace r2cc::net {
namespace {

constexpr uint16_t kRails = 4;
constexpr uint32_t kChunk = 1024;

// A session of a process with many peers, on a network that a test answers for.
class LinkDemandTest : public testing::Test {
 protected:
  void PeerAnswers() { session.OobUp("peer", std::vector<RailInfo>(kRails, RailInfo{.up = true, .endpoints = {{}}}), now); }
  // Links that it asked to open since the last call.
  std::vector<LinkId> Opened() {
    std::vector<LinkId> links;
    for (const SessionAction& action : session.TakeActions())
      if (action.kind == SessionAction::Kind::kOpenLink) links.push_back(action.link);
    return links;
  }
  void BringUp(LinkId link) {
    session.link_input().Connected(link, session.links().incarnation(link), now);
    session.Receive(link, frames::Proved{.link = link, .incarnation = session.links().incarnation(link), .ok = true}, now);
    ASSERT_EQ(session.links().state(link), InitiatorState::kUp);
  }

  Nanos now = kNanosPerSecond;
  SendSession session{{.local_rails = kRails, .chunk_base_bytes = kChunk, .all_links = false}, now};
  std::vector<std::byte> memory = std::vector<std::byte>(8 * kChunk);
};

using Links = std::vector<LinkId>;

TEST_F(LinkDemandTest, FlowsHaveTheirHomeLinksAndNoOthers) {
  session.OpenFlow(1, 2, now);
  PeerAnswers();
  EXPECT_EQ(Opened(), Links{2});
  BringUp(2);
  for (int i = 0; i < 100; ++i) session.Tick(now += 50 * kNanosPerMs);
  EXPECT_EQ(Opened(), Links{});
  session.OpenFlow(1, 0, now);
  EXPECT_EQ(Opened(), Links{0});
}

TEST_F(LinkDemandTest, AMessageOfSeveralChunksHasAllLinks) {
  const FlowId flow = session.OpenFlow(1, 2, now);
  PeerAnswers();
  EXPECT_EQ(Opened(), Links{2});
  BringUp(2);
  session.Post(flow, memory.data(), kChunk, now);
  EXPECT_EQ(Opened(), Links{});
  session.Post(flow, memory.data(), kChunk + 1, now);
  EXPECT_EQ(Opened(), (Links{0, 1, 3}));
}

TEST_F(LinkDemandTest, AHomeThatIsLostHasTheOthersInItsPlaceAtOnce) {
  session.OpenFlow(1, 2, now);
  PeerAnswers();
  Opened();
  BringUp(2);
  session.LocalRail(2, false, now);
  EXPECT_EQ(Opened(), (Links{0, 1, 3}));
}

TEST_F(LinkDemandTest, SoHasAHomeThatWasNeverUp) {
  session.LocalRail(1, false, now);
  session.OpenFlow(1, 1, now);
  PeerAnswers();
  EXPECT_EQ(Opened(), (Links{0, 2, 3}));
}

TEST_F(LinkDemandTest, SoHasAHomeWhoseFirstAttemptFails) {
  session.OpenFlow(1, 1, now);
  PeerAnswers();
  EXPECT_EQ(Opened(), Links{1});
  session.LinkTrouble(1, session.links().incarnation(1), plan::EvidenceCause::kSocketError, now);
  session.Tick(now += kNanosPerMs);
  EXPECT_EQ(Opened(), (Links{0, 2, 3}));
}

TEST_F(LinkDemandTest, SoHasAHomeThatThePageCallsFailed) {
  session.OpenFlow(1, 1, now);
  PeerAnswers();
  EXPECT_EQ(Opened(), Links{1});
  BringUp(1);
  session.link_input().LocalVerdict(1, {.failed = true, .weight_permille = 0}, now);
  EXPECT_EQ(Opened(), (Links{0, 2, 3}));
}

TEST_F(LinkDemandTest, AFlowWhoseChunksGoEverywhereHasAllLinks) {
  const FlowId flow = session.OpenFlow(1, 1, now);
  PeerAnswers();
  EXPECT_EQ(Opened(), Links{1});
  session.SetDealt(flow, true);
  session.Tick(now += kNanosPerMs);
  EXPECT_EQ(Opened(), (Links{0, 2, 3}));
}

TEST(LinkDemand, AProcessWithFewPeersOpensAllAtOnce) {
  SendSession session({.local_rails = kRails}, 0);
  session.OpenFlow(1, 2, 0);
  session.OobUp("peer", std::vector<RailInfo>(kRails, RailInfo{.up = true, .endpoints = {{}}}), 0);
  int opened = 0;
  for (const SessionAction& action : session.TakeActions()) opened += action.kind == SessionAction::Kind::kOpenLink;
  EXPECT_EQ(opened, kRails);
}

}  // namespace
}  // namespace r2cc::net
