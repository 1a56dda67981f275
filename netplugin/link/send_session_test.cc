// How a SendSession opens its links. session_test has both ends.

#include "netplugin/link/send_session.h"

#include <gtest/gtest.h>

#include <vector>

namespace r2cc::net {
namespace {

constexpr uint16_t kRails = 2;

struct SendSessionTest : testing::Test {
  SendSessionTest() { session.OobUp("peer", std::vector<RailInfo>(kRails, RailInfo{.up = true, .endpoints = {{}}}), now); }

  // Links that it asked to open since the last call.
  std::vector<LinkId> Opened() {
    std::vector<LinkId> links;
    for (const Action& action : session.TakeActions())
      if (action.kind == Action::Kind::kOpenLink) links.push_back(action.link);
    return links;
  }
  void HearRailUp() { session.Receive(kOobLane, Frame{.type = FrameType::kRailUp, .number = 1}, now); }

  Nanos now = 0;
  SendSession session{{.local_rails = kRails}, now};
};

TEST_F(SendSessionTest, ARailThatComesBackBeginsAnAttemptAnewOnceHoweverManyLanesTell) {
  EXPECT_EQ(Opened(), (std::vector<LinkId>{0, 1}));
  EXPECT_EQ(session.incarnation(1), 1u);
  HearRailUp();
  now += 4 * kNanosPerMs;
  HearRailUp();
  HearRailUp();
  EXPECT_EQ(Opened(), std::vector<LinkId>{1});
  EXPECT_EQ(session.incarnation(1), 2u);
  // Down and up again.
  now += 250 * kNanosPerMs;
  HearRailUp();
  EXPECT_EQ(Opened(), std::vector<LinkId>{1});
  EXPECT_EQ(session.link_state(1), InitiatorState::kConnecting);
}

TEST_F(SendSessionTest, ARailThatIsFoundElsewhereIsTriedThere) {
  std::vector<RailInfo> rails(kRails, RailInfo{.up = true, .endpoints = {{}}});
  Opened();
  HearRailUp();  // by a lane that is quicker than the greeting
  EXPECT_EQ(Opened(), std::vector<LinkId>{1});
  now += 1 * kNanosPerMs;
  session.OobDown(Reach::kSilent, now);
  rails[1].endpoints[0].bytes = {10, 0, 0, 9};
  session.OobUp("peer", rails, now);
  EXPECT_EQ(Opened(), std::vector<LinkId>{1});
  // The same again is no news, and a rail that is down is not tried.
  session.OobUp("peer", rails, now);
  rails[1].endpoints[0].bytes = {10, 0, 0, 10};
  rails[1].up = false;
  session.OobUp("peer", rails, now);
  EXPECT_EQ(Opened(), std::vector<LinkId>{});
}

}  // namespace
}  // namespace r2cc::net
