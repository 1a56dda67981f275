// How keys to the receiver's memory travel, and what waits for them: from the acceptor's AnnouncedRegions to the initiator's RemoteRegions.

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "netplugin/link/announced_regions.h"
#include "netplugin/link/recv_session.h"
#include "netplugin/link/remote_regions.h"
#include "netplugin/link/send_session.h"

namespace r2cc::net {
namespace {

constexpr uint16_t kRails = 2;
constexpr RegionId kRegion = 5;

// Registered on all rails, but those left out; the key is {rail, generation}.
std::shared_ptr<Region> MakeRegion(uint32_t generation, const std::vector<uint8_t>& without = {}) {
  auto region = std::make_shared<Region>(Region{kRegion, generation, 0x10000, 4096, {}});
  for (uint8_t rail = 0; rail < kRails; ++rail) {
    std::vector<RailEndpoint>& keys = region->keys.emplace_back();
    if (std::find(without.begin(), without.end(), rail) == without.end())
      keys.push_back({TransportKind::kTcp, {rail, static_cast<uint8_t>(generation)}});
  }
  return region;
}

struct RemoteRegionsTest : testing::Test {
  RemoteRegionsTest() {
    regions.set_rails(kRails);
    for (LinkId link = 0; link < kRails; ++link) regions.SetLink(link, link, link, TransportKind::kTcp);
  }
  RemoteRegions regions;
};

TEST_F(RemoteRegionsTest, AGrantWaitsForTheGenerationThatItNames) {
  using Known = RemoteRegions::Known;
  EXPECT_EQ(regions.Judge({}, 1 << 30), Known::kYes) << "what needs no key";
  EXPECT_EQ(regions.Judge({kRegion, 1, 0}, 1), Known::kNotYet);
  ASSERT_TRUE(regions.Announced(MakeRegion(2)));
  EXPECT_EQ(regions.Judge({kRegion, 1, 0}, 1), Known::kYes) << "later keys will do";
  EXPECT_EQ(regions.Judge({kRegion, 2, 0}, 4096), Known::kYes);
  EXPECT_EQ(regions.Judge({kRegion, 3, 0}, 1), Known::kNotYet);
  EXPECT_EQ(regions.Judge({kRegion, 2, 1}, 4096), Known::kNever) << "beyond its end";
  EXPECT_EQ(regions.Judge({kRegion, 2, UINT64_MAX}, 1), Known::kNever);
  EXPECT_EQ(regions.Judge({kRegion, 2, 4096}, 0), Known::kYes);
}

TEST_F(RemoteRegionsTest, TheNewestKeyOfTheLinksRailAndTransportCounts) {
  EXPECT_FALSE(regions.Reaches(kRegion, 0));
  ASSERT_TRUE(regions.Announced(MakeRegion(2)));
  EXPECT_EQ(*regions.KeyOf(kRegion, 1), (Endpoint{1, 2}));
  ASSERT_TRUE(regions.Announced(MakeRegion(1))) << "a word that was overtaken";
  EXPECT_EQ(*regions.KeyOf(kRegion, 1), (Endpoint{1, 2}));
  ASSERT_TRUE(regions.Announced(MakeRegion(3, {1})));
  EXPECT_EQ(*regions.KeyOf(kRegion, 0), (Endpoint{0, 3}));
  EXPECT_FALSE(regions.Reaches(kRegion, 1)) << "its device is lost";
  ASSERT_TRUE(regions.Announced(MakeRegion(4)));
  EXPECT_EQ(*regions.KeyOf(kRegion, 1), (Endpoint{1, 4}));
  EXPECT_FALSE(regions.Reaches(kRegion, 2)) << "a link that never came up";
  regions.SetLink(0, 0, 0, TransportKind::kVerbs);
  EXPECT_FALSE(regions.Reaches(kRegion, 0)) << "another transport";
  auto gone = std::make_shared<Region>(Region{.id = kRegion, .generation = Region::kGone});
  ASSERT_TRUE(regions.Announced(gone));
  EXPECT_FALSE(regions.Reaches(kRegion, 1));
  EXPECT_TRUE(regions.Announced(gone));
}

TEST_F(RemoteRegionsTest, ARegionThatChangesOrFitsNoRailsIsRefused) {
  ASSERT_TRUE(regions.Announced(MakeRegion(1)));
  auto other = MakeRegion(1);
  other->keys[0][0].bytes = {9};
  EXPECT_FALSE(regions.Announced(other)) << "other keys of the same generation";
  other = MakeRegion(2);
  ++other->base;
  EXPECT_FALSE(regions.Announced(other));
  other = MakeRegion(2);
  ++other->bytes;
  EXPECT_FALSE(regions.Announced(other));
  other = MakeRegion(2);
  other->keys.emplace_back();
  EXPECT_FALSE(regions.Announced(other));
  ++other->id;
  EXPECT_FALSE(regions.Announced(other));
}

struct AnnouncedRegionsTest : testing::Test {
  AnnouncedRegionsTest() {
    control_queue.set_links(2);
    control_queue.Up(0);
    control_queue.Up(1);
  }
  // Generations that were told since the last call.
  std::vector<uint32_t> Announced() {
    std::vector<uint32_t> generations;
    for (const SessionAction& action : std::exchange(actions, {}))
      generations.push_back(std::get<frames::RegionAnnounced>(action.frame).region->generation);
    return generations;
  }
  std::vector<SessionAction> actions;
  ControlQueue control_queue{&actions};
  AnnouncedRegions regions{&control_queue};
};

TEST_F(AnnouncedRegionsTest, ARegionIsAnnouncedOnceAndRepeatedUntilItIsConfirmed) {
  regions.Use(MakeRegion(1), 0, 1);
  EXPECT_EQ(regions.GenerationOf(kRegion), 1u);
  regions.Use(MakeRegion(1), 1, 1);
  EXPECT_EQ(Announced(), std::vector<uint32_t>{1});
  control_queue.Resend(2);
  EXPECT_EQ(Announced(), (std::vector<uint32_t>{1, 1})) << "on both channels";
  regions.Confirmed(kRegion, 1);
  control_queue.Resend(3);
  EXPECT_TRUE(Announced().empty());
  EXPECT_TRUE(control_queue.idle());
}

TEST_F(AnnouncedRegionsTest, OnlyThePeerThatKnowsARegionGetsItsChanges) {
  EXPECT_FALSE(regions.Changed(MakeRegion(2), 1));
  EXPECT_TRUE(Announced().empty());
  regions.Use(MakeRegion(2), 0, 1);
  EXPECT_TRUE(regions.Changed(MakeRegion(4), 1));
  EXPECT_FALSE(regions.Changed(MakeRegion(3), 1)) << "told late by another thread";
  EXPECT_EQ(regions.GenerationOf(kRegion), 4u);
  EXPECT_EQ(Announced(), (std::vector<uint32_t>{2, 4}));
  // The confirmation of the newest is one of all.
  regions.Confirmed(kRegion, 4);
  EXPECT_TRUE(control_queue.idle());
  EXPECT_FALSE(regions.Changed(std::make_shared<Region>(Region{.id = kRegion, .generation = 5}), 1)) << "no grant can name it";
  EXPECT_EQ(Announced(), std::vector<uint32_t>{5});
  EXPECT_EQ(regions.GenerationOf(kRegion), 0u);
}

// Both sessions, by frames alone.
struct RegionSessionsTest : testing::Test {
  explicit RegionSessionsTest(bool all_links = true) : sender({.local_rails = kRails, .all_links = all_links}, now) {
    std::vector<RailInfo> rails(kRails, RailInfo{.up = true, .endpoints = {{}}});
    receiver.OobUp(now);
    sender.OobUp("peer", rails, now);
    flow = sender.OpenFlow(1, 0, now);
    for (LinkId link = 0; link < kRails; ++link) Open(link, 1);
    receiver.Receive(kOobChannel, frames::FlowOpen{.flow = flow}, now);
    receiver.AcceptFlow(flow, 0);
    Deliver();
  }
  void Open(LinkId link, Incarnation incarnation) {
    ASSERT_EQ(receiver.Greet(link, incarnation, link, link, now), RecvSession::Admission::kAccepted);
    receiver.ChannelOpened(link, incarnation, now);
    sender.link_input().Connected(link, incarnation, now);
    receiver.Proved(link, incarnation, true);
    Deliver();
  }
  // What is said arrives, but for regions that are held up.
  void Deliver() {
    for (int i = 0; i < 4; ++i) {
      receiver.Flush(now);
      for (const SessionAction& action : receiver.TakeActions()) {
        if (action.kind != SessionAction::Kind::kSend) continue;
        if (TypeOf(action.frame) == FrameType::kRegion && hold)
          held.push_back(action.frame);
        else
          sender.Receive(action.channel, action.frame, now);
      }
      for (const SessionAction& action : sender.TakeActions())
        if (action.kind == SessionAction::Kind::kSend) receiver.Receive(action.channel, action.frame, now);
    }
  }
  void Post(const std::shared_ptr<const Region>& region, uint64_t offset = 0) {
    if (receiver.regions().GenerationOf(memory.id) == 0) receiver.UseRegion(flow, region, now);
    receiver.Post(flow, {memory.base + offset, &memory}, kBytes, now);
    sender.Post(flow, bytes, kBytes, now);
    now += kNanosPerSecond;
    Deliver();
  }
  // The key of the next chunk of the link; {0xff}: it needs none; empty if there is no chunk.
  Endpoint Pull(LinkId link) {
    Chunk chunk;
    if (!sender.Pull(link, 1, &chunk, now)) return {};
    const WriteTarget target = sender.TargetOf(link, chunk);
    address = target.address;
    return target.key == nullptr ? Endpoint{0xff} : *target.key;
  }

  static constexpr uint64_t kBytes = 1000;
  Nanos now = kNanosPerSecond;
  SendSession sender;
  RecvSession receiver{{.local_rails = kRails, .remote_rails = kRails, .peer = "peer"}, now};
  FlowId flow = 0;
  std::byte bytes[4096];
  const Memory memory{.id = kRegion, .base = bytes, .bytes = sizeof(bytes)};
  bool hold = false;
  std::vector<Frame> held;
  uint64_t address = 0;
};

TEST_F(RegionSessionsTest, AMessageGoesByTheKeyOfItsRailToItsPlace) {
  Post(MakeRegion(1), 512);
  EXPECT_EQ(Pull(1), Endpoint{}) << "the flow is at home on the other rail";
  EXPECT_EQ(Pull(0), (Endpoint{0, 1}));
  EXPECT_EQ(address, 0x10000u + 512);
}

TEST_F(RegionSessionsTest, AMessageWaitsForItsKeys) {
  hold = true;
  Post(MakeRegion(1));
  EXPECT_EQ(Pull(0), Endpoint{});
  ASSERT_FALSE(held.empty());
  sender.Receive(0, held.front(), now);
  EXPECT_EQ(Pull(0), (Endpoint{0, 1}));
}

// Its memory may be gone before the word that it is placed has come, and nobody will tell of it again.
TEST_F(RegionSessionsTest, AGrantDoesNotWaitForTheKeysOfWhatIsPlaced) {
  sender.Post(flow, bytes, kBytes, now);
  sender.Post(flow, bytes, kBytes, now);
  FlowReport grant{.flow = flow, .grants = true};
  grant.capacities = {kBytes};
  sender.Receive(0, grant, now);
  EXPECT_EQ(Pull(0), Endpoint{0xff});
  grant.capacities = {kBytes, kBytes};
  grant.places = {{kRegion, 1, 0}, {}};
  sender.Receive(0, grant, now);
  EXPECT_EQ(Pull(0), Endpoint{}) << "it waits";
  sender.Receive(0, FlowReport{.flow = flow, .placed_through = 1}, now);
  EXPECT_EQ(Pull(0), Endpoint{0xff}) << "in memory that needs no key";
}

TEST_F(RegionSessionsTest, AGrantedMessageWaitsForTheKeysOfTheDeviceThatCameBack) {
  Post(MakeRegion(1));
  Post(MakeRegion(1), 1000);
  hold = true;
  receiver.RegionChanged(MakeRegion(2, {0}), now);
  receiver.RegionChanged(MakeRegion(3), now);
  Deliver();
  ASSERT_GE(held.size(), 2u);
  // The second word overtakes the first one.
  sender.Receive(0, held.back(), now);
  EXPECT_EQ(Pull(0), (Endpoint{0, 3}));
  sender.Receive(0, held.front(), now);
  EXPECT_EQ(Pull(0), (Endpoint{0, 3}));
}

// The copies went on another channel, and arrive after the news that the region is gone.
TEST_F(RegionSessionsTest, TheEndOfARegionIsRepeatedIfACopyOfItsKeysComesLate) {
  hold = true;
  Post(MakeRegion(1));
  ASSERT_FALSE(held.empty());
  const std::vector<Frame> copies = std::exchange(held, {});
  receiver.RegionChanged(std::make_shared<Region>(Region{.id = kRegion, .generation = Region::kGone}), now);
  Deliver();
  ASSERT_EQ(held.size(), 1u);
  sender.Receive(0, std::exchange(held, {})[0], now);
  Deliver();
  EXPECT_TRUE(held.empty()) << "it is confirmed";
  sender.Receive(1, copies[0], now);
  Deliver();
  ASSERT_EQ(held.size(), 1u);
  EXPECT_EQ(std::get<frames::RegionAnnounced>(held[0]).region->generation, Region::kGone);
  sender.Receive(1, std::exchange(held, {})[0], now);
  Deliver();
  EXPECT_TRUE(held.empty());
}

TEST_F(RegionSessionsTest, ABufferThatItsRailDoesNotReachIsReachedOnAnother) {
  Post(MakeRegion(1, {0}));
  EXPECT_EQ(Pull(0), Endpoint{});
  EXPECT_EQ(Pull(1), (Endpoint{1, 1}));
}

struct LinksOnDemandTest : RegionSessionsTest {
  LinksOnDemandTest() : RegionSessionsTest(false) {}
};

TEST_F(LinksOnDemandTest, ABufferThatTheHomeLinkDoesNotReachHasTheOthersOpened) {
  Post(MakeRegion(1));
  sender.Tick(now += 10 * kNanosPerMs);
  EXPECT_EQ(Pull(0), (Endpoint{0, 1}));
  EXPECT_EQ(sender.links().state(1), InitiatorState::kIdle);
  Post(MakeRegion(1));
  receiver.RegionChanged(MakeRegion(2, {0}), now);
  Deliver();
  for (int i = 0; i < 2; ++i) {
    sender.Receive(0, frames::Pong{}, now);
    sender.Tick(now += 10 * kNanosPerMs);
  }
  EXPECT_EQ(sender.links().state(1), InitiatorState::kConnecting);
}

// Its rail is down for good; the others work, so that the peer is not out of reach.
TEST_F(RegionSessionsTest, AFlowIntoMemoryThatNoLinkThatWorksReachesFailsAtTheDeadline) {
  Post(MakeRegion(1, {1}));
  sender.LocalRail(0, false, now);
  const auto pass = [this](Nanos time) {
    for (const Nanos end = now + time; now < end;) {
      now += 10 * kNanosPerMs;
      sender.Receive(1, frames::Pong{}, now);
      sender.Tick(now);
    }
  };
  pass(20 * kNanosPerSecond);
  EXPECT_EQ(sender.flows().at(flow).state, SendSession::FlowState::kOpen);
  // A word that it is reached starts the time anew.
  receiver.RegionChanged(MakeRegion(2), now);
  Deliver();
  pass(10 * kNanosPerMs);
  receiver.RegionChanged(MakeRegion(3, {1}), now);
  Deliver();
  pass(29 * kNanosPerSecond);
  EXPECT_EQ(sender.flows().at(flow).state, SendSession::FlowState::kOpen);
  pass(2 * kNanosPerSecond);
  EXPECT_EQ(sender.flows().at(flow).state, SendSession::FlowState::kFailed);
  EXPECT_EQ(sender.flows().at(flow).error,
            "R2CC: no link that works has reached memory of peer peer for 30000 ms (R2CC_DEADLINE_MS): it is registered on rails that are "
            "down");
  EXPECT_FALSE(sender.failed()) << "the peer's other flows go on";
}

// Also if it went on between two ticks, so that no tick saw it.
TEST_F(RegionSessionsTest, AFlowThatWentOnIsNotStrandedForWhatWasBefore) {
  Post(MakeRegion(1, {1}));
  Post(MakeRegion(1, {1}));
  sender.LocalRail(0, false, now);
  const auto pass = [this](Nanos time) {
    for (const Nanos end = now + time; now < end;) {
      now += 10 * kNanosPerMs;
      sender.Receive(1, frames::Pong{}, now);
      sender.Tick(now);
    }
  };
  pass(29 * kNanosPerSecond);
  receiver.RegionChanged(MakeRegion(2), now);
  Deliver();
  EXPECT_EQ(Pull(1), (Endpoint{1, 2}));
  receiver.RegionChanged(MakeRegion(3, {1}), now);
  Deliver();
  pass(20 * kNanosPerSecond);
  EXPECT_EQ(sender.flows().at(flow).state, SendSession::FlowState::kOpen) << sender.flows().at(flow).error;
  pass(11 * kNanosPerSecond);
  EXPECT_EQ(sender.flows().at(flow).state, SendSession::FlowState::kFailed);
}

TEST_F(RegionSessionsTest, AGrantMayChangeItsGenerationAndNothingElse) {
  Post(MakeRegion(1));
  const auto refused = [this](const BufferPlace& place, uint64_t capacity) {
    FlowReport grant{.flow = flow, .grants = true};
    grant.capacities = {capacity};
    grant.places = {place};
    sender.TakeActions();
    sender.Receive(0, grant, now);
    for (const SessionAction& action : sender.TakeActions())
      if (action.kind == SessionAction::Kind::kCloseLink) return true;
    return false;
  };
  EXPECT_FALSE(refused({kRegion, 1, 0}, kBytes));
  EXPECT_FALSE(refused({}, kBytes)) << "the receiver has forgotten it";
  EXPECT_TRUE(refused({kRegion, 1, 8}, kBytes));
}

// Before the first chunk of an incarnation can be pulled, the keys are there that were new when it was proved.
TEST_F(RegionSessionsTest, ALinkIsProvedAfterTheKeysAreAnnounced) {
  Post(MakeRegion(1));
  receiver.LinkTrouble(1, 1, plan::EvidenceCause::kLinkDown, now);
  receiver.TakeActions();
  receiver.LinkClosed(1, 1, true, now);
  receiver.RegionChanged(MakeRegion(2, {1}), now);
  receiver.RegionChanged(MakeRegion(3), now);
  ASSERT_EQ(receiver.Greet(1, 2, 1, 1, now), RecvSession::Admission::kAccepted);
  receiver.ChannelOpened(1, 2, now);
  receiver.TakeActions();
  receiver.Proved(1, 2, true);
  std::vector<FrameType> on_it;
  for (const SessionAction& action : receiver.TakeActions())
    if (action.kind == SessionAction::Kind::kSend && action.channel == 1) on_it.push_back(TypeOf(action.frame));
  EXPECT_EQ(on_it, (std::vector<FrameType>{FrameType::kRegion, FrameType::kProved}));
}

}  // namespace
}  // namespace r2cc::net
