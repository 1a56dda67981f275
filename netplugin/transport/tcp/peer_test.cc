#include "netplugin/transport/tcp/peer.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "netplugin/transport/tcp/fake_peer.h"

namespace r2cc::net {
namespace {

constexpr FlowId kFlow = 1;
constexpr Nanos kMicro = 1000;

struct PeerTest : testing::Test {
  // While another thread has the turn.
  void WithTurnTaken(const std::function<void()>& call) {
    const auto turn = peer.TakeTurn();
    std::thread(call).join();
  }

  // From now on each look finds something that may be published.
  void FindEachTime() {
    peer.Help(kFlow);  // the first one ticks
    peer.settled = 0;
    peer.hot_moves = peer.publishes_found = true;
  }

  FakeClock clock;
  FakeIo io{&clock};
  FakePeer peer{&io};
};

TEST_F(PeerTest, ARequestIsPostedAtOnceByItsCaller) {
  peer.Submit(kFlow, nullptr, 7);
  EXPECT_EQ(peer.posted, std::vector<uint64_t>{7});
  EXPECT_TRUE(peer.posted_in_jobs_turn[0]);
  EXPECT_EQ(peer.settled, 1);
  EXPECT_EQ(peer.helped(), 1u);
}

TEST_F(PeerTest, NobodyWaitsForATurnAndWhatWasLeftGoesFirst) {
  WithTurnTaken([this] {
    peer.Submit(kFlow, nullptr, 1);
    peer.Submit(kFlow, nullptr, 2);
    peer.Help(kFlow);
  });
  EXPECT_TRUE(peer.posted.empty());
  EXPECT_EQ(peer.hots, 0);
  EXPECT_EQ(peer.helped(), 0u);
  peer.Submit(kFlow, nullptr, 3);
  EXPECT_EQ(peer.posted, (std::vector<uint64_t>{1, 2, 3}));
}

TEST_F(PeerTest, WhoHelpsPostsWhatWasLeft) {
  WithTurnTaken([this] { peer.Submit(kFlow, nullptr, 1); });
  peer.Help(kFlow);
  EXPECT_EQ(peer.posted, std::vector<uint64_t>{1});
  EXPECT_EQ(peer.settled, 1);
}

TEST_F(PeerTest, AnIdleLookSettlesNothing) {
  peer.Help(kFlow);  // the first one ticks
  EXPECT_EQ(peer.settled, 1);
  peer.Help(kFlow);
  EXPECT_EQ(peer.hots, 2);
  EXPECT_EQ(peer.settled, 1);
}

TEST_F(PeerTest, WhatMovedOrWasLeftOverIsSettled) {
  peer.Help(kFlow);
  peer.hot_moves = true;
  peer.settle_more = true;
  peer.Help(kFlow);
  EXPECT_EQ(peer.settled, 2);
  EXPECT_TRUE(peer.more());
  peer.hot_moves = false;
  peer.settle_more = false;
  peer.Help(kFlow);
  EXPECT_EQ(peer.settled, 3);
  EXPECT_FALSE(peer.more());
}

TEST_F(PeerTest, WhoWaitedHearsFirstAndTheNextTurnDoesTheRest) {
  peer.publishes_found = true;
  peer.Help(kFlow);  // the first one ticks: that is no find
  EXPECT_EQ(peer.published, 0);
  EXPECT_EQ(peer.settled, 1);
  peer.settled = 0;
  peer.hot_moves = true;
  peer.Help(kFlow);
  EXPECT_EQ(peer.published, 1);
  EXPECT_EQ(peer.settled, 0);
  peer.hot_moves = false;
  peer.Help(kFlow);
  EXPECT_EQ(peer.settled, 1);
  peer.Help(kFlow);
  EXPECT_EQ(peer.settled, 1);
}

TEST_F(PeerTest, WhoeverHasTheNextTurnSettlesOnceWhatWasLeft) {
  FindEachTime();
  peer.Help(kFlow);
  peer.Submit(kFlow, nullptr, 8);
  EXPECT_EQ(peer.settled, 1);
  peer.Help(kFlow);
  EXPECT_TRUE(peer.Service());
  EXPECT_EQ(peer.settled, 2);
  peer.Help(kFlow);
  peer.TickTurn();
  EXPECT_EQ(peer.settled, 3);
  EXPECT_EQ(peer.published, 3);
}

TEST_F(PeerTest, ARequestThatWaitedIsSettledWithWhatWasFound) {
  FindEachTime();
  WithTurnTaken([this] { peer.Submit(kFlow, nullptr, 8); });
  peer.Help(kFlow);
  EXPECT_EQ(peer.settled, 1);
}

TEST_F(PeerTest, WhoFindsSomethingEachTimeLeavesNothingTwice) {
  FindEachTime();
  for (int i = 0; i < 4; ++i) peer.Help(kFlow);
  EXPECT_EQ(peer.published, 2);
  EXPECT_EQ(peer.settled, 2);
}

TEST_F(PeerTest, WhoWaitsLooksAtAllSocketsSoonAndLetsTimePass) {
  peer.Help(kFlow);
  EXPECT_EQ(peer.ticks, 1);
  peer.Arrive();
  peer.Help(kFlow);
  EXPECT_EQ(peer.events, 0);
  clock.Advance(50 * kMicro);
  peer.Help(kFlow);
  EXPECT_EQ(peer.events, 1);
  EXPECT_EQ(peer.ticks, 1);
  clock.Advance(Peer::kTickEvery);
  peer.Help(kFlow);
  EXPECT_EQ(peer.ticks, 2);
}

TEST_F(PeerTest, WhileHisMessagesComeHeLooksElsewhereSeldom) {
  peer.Help(kFlow);
  peer.Arrive();
  int looks = 0;
  for (; peer.events == 0; ++looks) {
    peer.hot_moves = looks % 2 == 0;
    clock.Advance(30 * kMicro);
    peer.Help(kFlow);
  }
  EXPECT_EQ(looks, 34) << "1000 microseconds, in looks that find nothing";
  EXPECT_EQ(peer.ticks, 1);
}

TEST_F(PeerTest, TheIoThreadHandlesWhatArrivedUnlessSomebodyElseDoes) {
  peer.Arrive();
  bool served = true;
  WithTurnTaken([&] { served = peer.Service(); });
  EXPECT_FALSE(served);
  EXPECT_EQ(peer.events, 0);
  EXPECT_TRUE(peer.Service());
  EXPECT_EQ(peer.events, 1);
  EXPECT_EQ(peer.helped(), 0u) << "it is not NCCL's help";
}

TEST_F(PeerTest, ATickReadsFirst) {
  peer.Arrive();
  WithTurnTaken([this] { peer.Submit(kFlow, nullptr, 1); });
  peer.TickTurn();
  EXPECT_EQ(peer.events, 1);
  EXPECT_EQ(peer.ticks, 1);
  EXPECT_EQ(peer.posted, std::vector<uint64_t>{1});
  EXPECT_FALSE(peer.posted_in_jobs_turn[0]);
}

TEST_F(PeerTest, APollReadsWhatThePollerDoesNotKnowOfToo) {
  peer.Help(kFlow);
  EXPECT_EQ(peer.unwatched, "r");
  peer.Help(kFlow);
  EXPECT_EQ(peer.unwatched, "r");
  clock.Advance(50 * kMicro);
  peer.Help(kFlow);
  EXPECT_EQ(peer.unwatched, "rr");
}

TEST_F(PeerTest, WhenNobodyComesThePollerHasAllSocketsAgain) {
  peer.TickTurn();
  EXPECT_EQ(peer.unwatched, "wr");
}

TEST_F(PeerTest, AfterTheEndNothingIsDone) {
  WithTurnTaken([this] { peer.Submit(kFlow, nullptr, 1); });
  {
    const auto turn = peer.TakeTurn();
    peer.Shut();
    peer.Shut();
  }
  EXPECT_EQ(peer.closed, 1);
  peer.Submit(kFlow, nullptr, 2);
  peer.Help(kFlow);
  peer.TickTurn();
  EXPECT_TRUE(peer.Service());
  EXPECT_TRUE(peer.posted.empty());
  EXPECT_EQ(peer.hots + peer.settled + peer.ticks, 0);
}

struct CrewedPeerTest : PeerTest {
  CrewedPeerTest() {
    std::string error;
    movers = Movers::Start(1, &error);
    EXPECT_NE(movers, nullptr) << error;
    io.movers = movers.get();
  }
  void MoveBytes(uint32_t bytes) {
    const auto turn = busy.TakeTurn();
    busy.MoveBytes(bytes);
  }

  static constexpr uint32_t kAfterBytes = 1 << 20;
  FakeIo io{&clock, kAfterBytes};
  FakePeer busy{&io};
  std::unique_ptr<Movers> movers;
};

TEST_F(CrewedPeerTest, HasACrewFromBulkToSmallMessages) {
  busy.Help(kFlow);
  EXPECT_FALSE(busy.crewed());
  MoveBytes(kAfterBytes);
  busy.Help(kFlow);
  EXPECT_TRUE(busy.crewed());
  EXPECT_TRUE(busy.has_crew);
  clock.Advance(kNanosPerSecond);
  busy.Help(kFlow);
  EXPECT_TRUE(busy.crewed()) << "who waits for more does not end it";
  for (int i = 0; i < BulkRun::kSmallMost; ++i) MoveBytes(8);
  busy.Submit(kFlow, nullptr, 8);
  EXPECT_FALSE(busy.crewed());
  EXPECT_FALSE(busy.has_crew);
}

TEST_F(CrewedPeerTest, ASendersCrewIsThereBeforeItsMessageIsPosted) {
  busy.counts_requests = true;
  busy.Submit(kFlow, nullptr, kAfterBytes - 1);
  busy.Submit(kFlow, nullptr, kAfterBytes);
  EXPECT_EQ(busy.posted_with_crew, (std::vector<bool>{false, true}));
}

TEST_F(CrewedPeerTest, AReceiversCrewIsThereInTheTurnInWhichALargeMessageBegins) {
  busy.found_bytes = kAfterBytes;
  busy.hot_moves = true;
  busy.Help(kFlow);
  EXPECT_TRUE(busy.crewed());
  EXPECT_TRUE(busy.settled_with_crew);
}

TEST_F(CrewedPeerTest, AndSoItIsWhenTheIoThreadFindsTheMessage) {
  busy.found_bytes = kAfterBytes;
  busy.Arrive();
  EXPECT_TRUE(busy.Service());
  EXPECT_TRUE(busy.crewed());
  EXPECT_TRUE(busy.settled_with_crew);
}

TEST_F(CrewedPeerTest, TheCrewRestsWhenNothingMovesAndIsBackWithTheNextLargeMessage) {
  const auto look = [this] {
    const auto turn = busy.TakeTurn();
    busy.UpdateCrew();
  };
  MoveBytes(kAfterBytes);
  busy.Help(kFlow);
  clock.Advance(19 * kNanosPerMs);
  look();
  EXPECT_TRUE(busy.crewed());
  clock.Advance(1 * kNanosPerMs);
  look();
  EXPECT_FALSE(busy.crewed());
  EXPECT_FALSE(busy.has_crew);
  busy.Help(kFlow);
  EXPECT_FALSE(busy.crewed());
  MoveBytes(kAfterBytes / 8);
  busy.Help(kFlow);
  EXPECT_TRUE(busy.crewed());
}

TEST_F(CrewedPeerTest, WhileLargeMessagesComeHeLooksElsewhereSoon) {
  busy.Help(kFlow);
  MoveBytes(kAfterBytes / 2);
  busy.hot_moves = true;
  busy.Help(kFlow);
  busy.hot_moves = false;
  busy.Arrive();
  clock.Advance(50 * kMicro);
  busy.Help(kFlow);
  EXPECT_EQ(busy.events, 1);
}

TEST_F(CrewedPeerTest, WithoutMoversThereIsNone) {
  io.movers = nullptr;
  MoveBytes(kAfterBytes);
  busy.Help(kFlow);
  EXPECT_FALSE(busy.crewed());
  EXPECT_EQ(busy.crews, 0);
}

TEST_F(CrewedPeerTest, HisCallersStayOutOfTheWay) {
  MoveBytes(kAfterBytes);
  busy.Help(kFlow);
  const uint64_t before = busy.helped();
  for (int i = 0; i < 10; ++i) busy.Help(kFlow);
  EXPECT_EQ(busy.helped(), before);
  busy.Arrive();
  clock.Advance(20 * kMicro);
  busy.Help(kFlow);
  EXPECT_EQ(busy.helped(), before + 1);
  EXPECT_EQ(busy.events, 1) << "he looks at all sockets";
  busy.Submit(kFlow, nullptr, 7);
  EXPECT_EQ(busy.posted, std::vector<uint64_t>{7});
}

// Every request is posted, whoever has the turn, and each thread's in its order.
TEST_F(PeerTest, ThreadsMeetInTheInbox) {
  constexpr uint64_t kThreads = 3, kEach = 2000;
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([this, thread] {
      for (uint64_t i = 0; i < kEach; ++i) peer.Submit(kFlow, nullptr, thread * kEach + i);
    });
  for (std::thread& thread : threads) thread.join();
  peer.Help(kFlow);
  ASSERT_EQ(peer.posted.size(), kThreads * kEach);
  std::vector<uint64_t> next(kThreads, 0);
  for (const uint64_t value : peer.posted) EXPECT_EQ(value % kEach, next[value / kEach]++);
}

}  // namespace
}  // namespace r2cc::net
