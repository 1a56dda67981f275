// How a SendSession opens its links. tests/sim has both ends.

#include "netplugin/link/send_session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "netplugin/flow/tuning.h"

namespace r2cc::net {
namespace {

constexpr uint16_t kRails = 2;

struct SendSessionTest : testing::Test {
  SendSessionTest() { session.OobUp("peer", std::vector<RailInfo>(kRails, RailInfo{.up = true, .endpoints = {{}}}), now); }

  // Links that it asked to open since the last call.
  std::vector<LinkId> Opened() {
    std::vector<LinkId> links;
    for (const SessionAction& action : session.TakeActions())
      if (action.kind == SessionAction::Kind::kOpenLink) links.push_back(action.link);
    return links;
  }
  void ReceiveRailUp() { session.Receive(kOobChannel, frames::RailUp{.rail = 1}, now); }

  Nanos now = 0;
  SendSession session{{.local_rails = kRails}, now};
};

TEST_F(SendSessionTest, ARailThatIsBackRestartsAnAttemptOnceForAllChannels) {
  EXPECT_EQ(Opened(), (std::vector<LinkId>{0, 1}));
  EXPECT_EQ(session.links().incarnation(1), 1u);
  ReceiveRailUp();
  now += 4 * kNanosPerMs;
  ReceiveRailUp();
  ReceiveRailUp();
  EXPECT_EQ(Opened(), std::vector<LinkId>{1});
  EXPECT_EQ(session.links().incarnation(1), 2u);
  // Down and up again.
  now += 250 * kNanosPerMs;
  ReceiveRailUp();
  EXPECT_EQ(Opened(), std::vector<LinkId>{1});
  EXPECT_EQ(session.links().state(1), InitiatorState::kConnecting);
}

TEST_F(SendSessionTest, ARailThatIsFoundElsewhereIsTriedThere) {
  std::vector<RailInfo> rails(kRails, RailInfo{.up = true, .endpoints = {{}}});
  Opened();
  ReceiveRailUp();  // by a channel that is quicker than the greeting
  EXPECT_EQ(Opened(), std::vector<LinkId>{1});
  now += 1 * kNanosPerMs;
  session.OobDown(ProbeResult::kSilent, now);
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

TEST_F(SendSessionTest, APostedMessageIsOutstandingUntilItsFlowFails) {
  const FlowId flow = session.OpenFlow(1, 0, now);
  session.Receive(kOobChannel, frames::FlowOpened{.flow = flow, .ok = true}, now);
  char buffer[3] = {};
  session.Post(flow, buffer, sizeof(buffer), now);
  session.Post(flow, buffer, sizeof(buffer), now);
  EXPECT_EQ(session.Requests().outstanding, 2u);
  EXPECT_EQ(session.WaitsFor().what, plan::WaitFor::kReach);
  session.Receive(kOobChannel, frames::Bye{.flow = flow}, now);
  EXPECT_EQ(session.Requests().outstanding, 0u);
}

// The acceptor may close a flow before connect() has asked for its answer; the words come on different channels.
TEST_F(SendSessionTest, AFlowThatThePeerClosesWasOpened) {
  for (const bool answer_is_late : {false, true}) {
    const FlowId flow = session.OpenFlow(1, 0, now);
    EXPECT_FALSE(session.flows().at(flow).opened);
    const frames::FlowOpened opened{.flow = flow, .ok = true};
    if (!answer_is_late) session.Receive(kOobChannel, opened, now);
    session.Receive(kOobChannel, frames::Bye{.flow = flow}, now);
    if (answer_is_late) session.Receive(kOobChannel, opened, now);
    EXPECT_TRUE(session.flows().at(flow).opened);
    EXPECT_EQ(session.flows().at(flow).state, SendSession::FlowState::kFailed);
    EXPECT_EQ(session.flows().at(flow).error, "R2CC: peer peer closed the flow");
    EXPECT_FALSE(session.flows().at(flow).logged);
    // Nothing is asked again.
    session.TakeActions();
    session.Tick(now += kNanosPerSecond);
    for (const SessionAction& action : session.TakeActions()) EXPECT_NE(TypeOf(action.frame), FrameType::kFlowOpen);
  }
}

TEST_F(SendSessionTest, AFlowThatThePeerRefusesWasNotOpened) {
  const FlowId flow = session.OpenFlow(1, 0, now);
  session.TakeActions();
  session.Receive(kOobChannel, frames::FlowOpened{.flow = flow, .ok = false}, now);
  EXPECT_FALSE(session.flows().at(flow).opened);
  EXPECT_TRUE(session.flows().at(flow).logged);
  const std::vector<SessionAction> actions = session.TakeActions();
  EXPECT_TRUE(std::any_of(actions.begin(), actions.end(), [&](const SessionAction& action) {
    return action.kind == SessionAction::Kind::kWarn && action.text == session.flows().at(flow).error;
  }));
}

// A stopped peer's kernel accepts the out-of-band connection, and nobody greets.
class UngreetedTest : public testing::Test {
 protected:
  UngreetedTest() {
    session.OpenFlow(1, 0, now);
    RunFor(10 * kNanosPerMs);
    session.OobUngreeted(now);
  }
  // Answers each probe with `reach`; counts them.
  void RunFor(Nanos duration, ProbeResult result = ProbeResult::kAnswers) {
    for (const Nanos end = now + duration; now < end; now += 10 * kNanosPerMs) {
      session.Tick(now);
      for (const SessionAction& action : session.TakeActions()) {
        opened += action.kind == SessionAction::Kind::kOpenOob;
        if (action.kind != SessionAction::Kind::kProbePeer) continue;
        ++probes;
        session.PeerProbed(result, now);
      }
    }
  }

  static constexpr Nanos kDeadline = 5 * kNanosPerSecond, kSilence = 250 * kNanosPerMs;
  Nanos now = kNanosPerSecond;
  SendSession session{{.local_rails = kRails, .silence = kSilence, .deadline = kDeadline}, now};
  int probes = 0, opened = 0;
};

TEST_F(UngreetedTest, IsWaitedForAndAskedFor) {
  RunFor(kSilence);
  EXPECT_EQ(probes, 0) << "it may be about to answer";
  RunFor(60 * kNanosPerSecond);
  EXPECT_FALSE(session.failed());
  EXPECT_GE(probes, 200);
  EXPECT_EQ(opened, 1) << "and kept";
}

TEST_F(UngreetedTest, IsGoneIfItsAddressRefuses) {
  RunFor(60 * kNanosPerSecond);
  RunFor(2 * kSilence, ProbeResult::kRefused);
  EXPECT_TRUE(session.failed());
}

// A full queue of a stopped process is silent too.
TEST_F(UngreetedTest, IsWaitedForWhileTheConnectionIsOpen) {
  RunFor(3 * kDeadline, ProbeResult::kSilent);
  EXPECT_FALSE(session.failed());
  session.OobDown(ProbeResult::kSilent, now);
  RunFor(kDeadline - kSilence, ProbeResult::kSilent);
  EXPECT_FALSE(session.failed());
  RunFor(2 * kSilence, ProbeResult::kSilent);
  EXPECT_TRUE(session.failed());
}

// Although its link is up: what the daemon says of a rail, or of the one path that it has, counts for CollNet's plan.
TEST_F(SendSessionTest, ARailThatAVerdictForbidsIsLost) {
  const auto lost_by = [](const std::function<void(SendSession*, Nanos now)>& forbid) {
    Nanos now = 0;
    SendSession session({.local_rails = kRails}, now);
    session.OobUp("peer", std::vector<RailInfo>(kRails, RailInfo{.up = true, .endpoints = {{}}}), now);
    const auto lost = [&] {
      LostRails rails;
      rails.Add(session.links().Use(now));
      return rails.bits();
    };
    const auto prove = [&](LinkId link) {
      const Incarnation incarnation = session.links().incarnation(link);
      session.link_input().Connected(link, incarnation, now);
      session.Receive(link, frames::Proved{.link = link, .incarnation = incarnation, .ok = true}, now);
      EXPECT_EQ(session.links().state(link), InitiatorState::kUp);
    };
    for (const LinkId link : {0, 1}) prove(link);
    forbid(&session, now);
    EXPECT_EQ(lost(), 0u);
    now += tuning::kAttemptLeast;
    return lost();
  };
  EXPECT_EQ(lost_by([](SendSession* session, Nanos now) { session->link_input().LocalVerdict(1, {.failed = true}, now); }), 0b10u);
  EXPECT_EQ(lost_by([](SendSession* session, Nanos now) { session->link_input().PathVerdict({1, 1}, true, now); }), 0b10u);
}

// A device that has nothing to send does not notice that its peer's process is gone.
TEST_F(SendSessionTest, APeerWhoseAddressRefusesIsGoneAlthoughALinkReportsNothing) {
  constexpr Nanos kTick = 10 * kNanosPerMs;
  session.OpenFlow(1, 0, now);
  session.link_input().Connected(0, session.links().incarnation(0), now);
  session.Receive(0, frames::Proved{.link = 0, .incarnation = session.links().incarnation(0), .ok = true}, now);
  ASSERT_EQ(session.links().state(0), InitiatorState::kUp);
  session.OobDown(ProbeResult::kRefused, now);
  for (const Nanos end = now + 2 * kNanosPerSecond; now < end && !session.failed(); now += kTick) {
    session.Tick(now);
    for (const SessionAction& action : session.TakeActions())
      if (action.kind == SessionAction::Kind::kOpenOob) session.OobDown(ProbeResult::kRefused, now);
  }
  EXPECT_TRUE(session.failed());
}

// Peers that an acceptor lost in one moment come again one after the other.
TEST(SendSession, SessionsThatFailedTogetherTryAgainApart) {
  auto tries_again_at = [](uint64_t retry_seed) {
    SendSession session({.local_rails = 1, .retry_seed = retry_seed}, 0);
    session.OobUp("peer", std::vector<RailInfo>(1, RailInfo{.up = true, .endpoints = {{}}}), 0);
    session.TakeActions();
    session.LinkTrouble(0, 1, plan::EvidenceCause::kSocketError, 0);
    for (Nanos now = 0; now < kNanosPerSecond; now += kNanosPerMs / 10) {
      session.Tick(now);
      for (const SessionAction& action : session.TakeActions())
        if (action.kind == SessionAction::Kind::kOpenLink) return now;
    }
    return Nanos{0};
  };
  std::set<Nanos> tries;
  for (uint64_t seed = 1; seed <= 10; ++seed) tries.insert(tries_again_at(seed));
  EXPECT_GE(*tries.begin(), 50 * kNanosPerMs);
  EXPECT_GE(tries.size(), 5u);
}

// Nobody answers: the attempts become fewer and longer.
TEST(SendSession, AttemptsThatFailAreGivenMoreTime) {
  SendSession session({.local_rails = 1}, 0);
  session.OobUp("peer", std::vector<RailInfo>(1, RailInfo{.up = true, .endpoints = {{}}}), 0);
  std::vector<Nanos> took;
  Nanos opened = 0;
  for (Nanos now = 0; now < 60 * kNanosPerSecond; now += kNanosPerMs) {
    session.Tick(now);
    for (const SessionAction& action : session.TakeActions()) {
      if (action.kind == SessionAction::Kind::kOpenLink) opened = now;
      if (action.kind == SessionAction::Kind::kCloseLink) took.push_back(now - opened);
    }
  }
  ASSERT_GE(took.size(), 8u);
  EXPECT_EQ(took.front(), kNanosPerSecond);
  EXPECT_TRUE(std::is_sorted(took.begin(), took.end()));
  EXPECT_EQ(took.back(), 4 * kNanosPerSecond);
}

// Each end has lost another rail: one pair is left, and no home link joins it. However long that one is silent, and whatever the page and
// the peer say of it, it is tried again soon enough for R2CC_DEADLINE_MS.
TEST(SendSession, ACrossRailLinkThatIsTheLastWayIsTriedAgainSoon) {
  constexpr Nanos kTick = 10 * kNanosPerMs, kSoon = 8 * kNanosPerSecond;
  const auto longest_gap = [](const std::function<void(SendSession*)>& act) {
    SendSession session({.local_rails = kRails}, 0);
    std::vector<RailInfo> rails(kRails, RailInfo{.up = true, .endpoints = {{}}});
    rails[1].up = false;
    session.OobUp("peer", rails, 0);
    session.LocalRail(0, false, 0);
    act(&session);
    Nanos longest = 0, tried = 0;
    for (Nanos now = 0; now < 120 * kNanosPerSecond; now += kTick) {
      session.Tick(now);
      for (const SessionAction& action : session.TakeActions()) {
        if (action.kind != SessionAction::Kind::kOpenLink || action.link < kRails) continue;
        EXPECT_EQ(session.links().local_rail(action.link), 1);
        EXPECT_EQ(session.links().remote_rail(action.link), 0);
        longest = std::max(longest, now - std::exchange(tried, now));
      }
      longest = std::max(longest, now - tried);
    }
    return longest;
  };
  EXPECT_LE(longest_gap([](SendSession*) {}), kSoon);
  EXPECT_LE(longest_gap([](SendSession* session) { session->link_input().LocalVerdict(1, {.failed = true}, 0); }), kSoon)
      << "the page has no say";
  EXPECT_LE(longest_gap([](SendSession* session) { session->link_input().PathVerdict({1, 0}, true, 0); }), kSoon) << "of a path neither";
}

// It could not answer the attempts; its rails may have been sound for long.
TEST(SendSession, APeerThatWasStoppedIsTriedAsSoonAsItAnswers) {
  constexpr Nanos kTick = 10 * kNanosPerMs;
  SendSession session({.local_rails = 1}, 0);
  session.OobUp("peer", std::vector<RailInfo>(1, RailInfo{.up = true, .endpoints = {{}}}), 0);
  session.OpenFlow(1, 0, 0);
  uint64_t ping = 0;
  Nanos now = 0;
  const auto tries = [&] {
    bool opened = false;
    session.Tick(now += kTick);
    for (const SessionAction& action : session.TakeActions()) {
      opened |= action.kind == SessionAction::Kind::kOpenLink;
      const auto* const asked = std::get_if<frames::Ping>(&action.frame);
      if (asked != nullptr && action.channel == kOobChannel && action.kind == SessionAction::Kind::kSend) ping = asked->number;
    }
    return opened;
  };
  while (now < 20 * kNanosPerSecond || session.links().state(0) != InitiatorState::kIdle) tries();
  ASSERT_FALSE(tries()) << "it is to be tried again later";
  session.Receive(kOobChannel, frames::Pong{.number = ping}, now);
  EXPECT_TRUE(tries());
}

TEST(SendSessionSlots, OpenFlowsDifferByTheirLowBits) {
  SendSession session({.peer = "peer", .flow_slots = 4}, 0);
  std::set<uint32_t> slots;
  const FlowId first = session.OpenFlow(0, 0, 0);
  for (int i = 0; i < 100; ++i) {
    const FlowId flow = session.OpenFlow(0, 0, 0);
    EXPECT_NE(flow % 4, first % 4);
    session.CloseFlow(flow, 0);
  }
  std::vector<FlowId> all = {first};
  for (int i = 0; i < 3; ++i) all.push_back(session.OpenFlow(0, 0, 0));
  for (const FlowId flow : all) slots.insert(flow % 4);
  EXPECT_EQ(slots.size(), 4u);
  // One more than there are slots.
  const FlowId more = session.OpenFlow(0, 0, 0);
  EXPECT_EQ(session.flows().at(more).state, SendSession::FlowState::kFailed);
  EXPECT_EQ(session.flows().at(more).error, "R2CC: 4 flows are open to peer peer: as many as RDMA rails can distinguish; close some first");
  session.CloseFlow(more, 0);
}

// All flows are closed, and the host has vanished: it is not asked for ever whether it has heard so.
TEST(SendSessionForsaken, AVanishedHostIsLeftAloneWhenNoFlowIsLeft) {
  SendSession session({.peer = "peer"}, 0);
  session.CloseFlow(session.OpenFlow(0, 0, 0), 0);
  Nanos now = 0;
  for (; now < 29 * kNanosPerSecond; now += kNanosPerSecond / 10) session.Tick(now);
  EXPECT_FALSE(session.failed());
  session.TakeActions();
  for (; now < 32 * kNanosPerSecond; now += kNanosPerSecond / 10) session.Tick(now);
  EXPECT_TRUE(session.failed());
  EXPECT_TRUE(session.idle());
  for (const SessionAction& action : session.TakeActions()) EXPECT_NE(action.kind, SessionAction::Kind::kWarn) << action.text;
}

TEST_F(SendSessionTest, ThePeersRefusalOfAFlowIsItsError) {
  const FlowId flow = session.OpenFlow(0, 0, now);
  session.Receive(kOobChannel, frames::FlowOpened{.flow = flow, .cause = kSlotTaken}, now);
  EXPECT_EQ(session.flows().at(flow).error,
            "R2CC: peer peer has an open flow that RDMA rails cannot distinguish from this one: close that first");
}

}  // namespace
}  // namespace r2cc::net
