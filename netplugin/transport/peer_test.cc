#include "netplugin/transport/peer.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "netplugin/flow/tuning.h"
#include "netplugin/transport/fake_peer.h"

namespace r2cc::net {
namespace {

constexpr FlowId kFlow = 1;
constexpr Nanos kMicro = 1000;

struct PeerTest : testing::Test {
  // While another thread has the turn.
  void WithLockTaken(const std::function<void()>& call) {
    const PeerLock lock(peer);
    std::thread(call).join();
  }

  // From now on each look finds something that may be published.
  void FindEachTime() {
    peer.Progress(kFlow);  // the first one ticks
    peer.settled = 0;
    peer.hot_moves = peer.publishes_found = true;
  }

  FakeClock clock;
  FakeHost host{&clock};
  FakePeer peer{&host};
};

TEST_F(PeerTest, ARequestIsPostedAtOnceByItsCaller) {
  peer.Submit(kFlow, nullptr, 7);
  EXPECT_EQ(peer.posted, std::vector<uint64_t>{7});
  EXPECT_TRUE(peer.posted_by_job[0]);
  EXPECT_EQ(peer.settled, 1);
  EXPECT_EQ(peer.progress_calls(), 1u);
}

TEST_F(PeerTest, NobodyWaitsForATurnAndWhatWasLeftGoesFirst) {
  WithLockTaken([this] {
    peer.Submit(kFlow, nullptr, 1);
    peer.Submit(kFlow, nullptr, 2);
    peer.Progress(kFlow);
  });
  EXPECT_TRUE(peer.posted.empty());
  EXPECT_EQ(peer.hots, 0);
  EXPECT_EQ(peer.progress_calls(), 0u);
  peer.Submit(kFlow, nullptr, 3);
  EXPECT_EQ(peer.posted, (std::vector<uint64_t>{1, 2, 3}));
}

TEST_F(PeerTest, AnExceptionReachesItsCallerAndBreaksTheFlows) {
  WithLockTaken([this] { peer.Submit(kFlow, nullptr, 1); });
  peer.post_throws = true;
  EXPECT_THROW(peer.Progress(kFlow), std::bad_alloc);
  EXPECT_THROW(peer.Submit(kFlow, nullptr, 2), std::bad_alloc);
  EXPECT_EQ(peer.broken, 2);
  peer.post_throws = false;
  // The lock is free, and what was thrown away does not come again.
  std::thread([this] { peer.Submit(kFlow, nullptr, 3); }).join();
  EXPECT_EQ(peer.posted, std::vector<uint64_t>{3});
  EXPECT_TRUE(peer.posted_by_job[0]);
}

TEST_F(PeerTest, ATurnOfAnotherThreadPostsQueuedRequests) {
  WithLockTaken([this] { peer.Submit(kFlow, nullptr, 1); });
  peer.Progress(kFlow);
  EXPECT_EQ(peer.posted, std::vector<uint64_t>{1});
  EXPECT_EQ(peer.settled, 1);
}

TEST_F(PeerTest, AnIdleLookSettlesNothing) {
  peer.Progress(kFlow);  // the first one ticks
  EXPECT_EQ(peer.settled, 1);
  peer.Progress(kFlow);
  EXPECT_EQ(peer.hots, 2);
  EXPECT_EQ(peer.settled, 1);
}

TEST_F(PeerTest, ProgressAndLeftoversAreSettled) {
  peer.Progress(kFlow);
  peer.hot_moves = true;
  peer.settle_more = true;
  peer.Progress(kFlow);
  EXPECT_EQ(peer.settled, 2);
  EXPECT_TRUE(peer.more());
  peer.hot_moves = false;
  peer.settle_more = false;
  peer.Progress(kFlow);
  EXPECT_EQ(peer.settled, 3);
  EXPECT_FALSE(peer.more());
}

TEST_F(PeerTest, FoundMessagesArePublishedFirstAndTheNextTurnSettles) {
  peer.publishes_found = true;
  peer.Progress(kFlow);  // the first one ticks: that is no find
  EXPECT_EQ(peer.published, 0);
  EXPECT_EQ(peer.settled, 1);
  peer.settled = 0;
  peer.hot_moves = true;
  peer.Progress(kFlow);
  EXPECT_EQ(peer.published, 1);
  EXPECT_EQ(peer.settled, 0);
  peer.hot_moves = false;
  peer.Progress(kFlow);
  EXPECT_EQ(peer.settled, 1);
  peer.Progress(kFlow);
  EXPECT_EQ(peer.settled, 1);
}

TEST_F(PeerTest, TheNextTurnSettlesLeftoversOnce) {
  FindEachTime();
  peer.Progress(kFlow);
  peer.Submit(kFlow, nullptr, 8);
  EXPECT_EQ(peer.settled, 1);
  peer.Progress(kFlow);
  EXPECT_TRUE(peer.Service());
  EXPECT_EQ(peer.settled, 2);
  peer.Progress(kFlow);
  peer.Tick();
  EXPECT_EQ(peer.settled, 3);
  EXPECT_EQ(peer.published, 3);
}

TEST_F(PeerTest, ARequestThatWaitedIsSettledWithWhatWasFound) {
  FindEachTime();
  WithLockTaken([this] { peer.Submit(kFlow, nullptr, 8); });
  peer.Progress(kFlow);
  EXPECT_EQ(peer.settled, 1);
}

TEST_F(PeerTest, ASettlementIsPutOffByOneTurnAtMost) {
  FindEachTime();
  for (int i = 0; i < 4; ++i) peer.Progress(kFlow);
  EXPECT_EQ(peer.published, 2);
  EXPECT_EQ(peer.settled, 2);
}

TEST_F(PeerTest, AWaitingCallerPollsAllSocketsSoonAndLetsTimePass) {
  peer.Progress(kFlow);
  EXPECT_EQ(peer.ticks, 1);
  peer.Arrive();
  peer.Progress(kFlow);
  EXPECT_EQ(peer.events, 0);
  clock.Advance(50 * kMicro);
  peer.Progress(kFlow);
  EXPECT_EQ(peer.events, 1);
  EXPECT_EQ(peer.ticks, 1);
  clock.Advance(tuning::kTickEvery);
  peer.Progress(kFlow);
  EXPECT_EQ(peer.ticks, 2);
}

TEST_F(PeerTest, WhileItsMessagesComeTheCallerPollsOtherSocketsSeldom) {
  peer.Progress(kFlow);
  peer.Arrive();
  int looks = 0;
  for (; peer.events == 0; ++looks) {
    peer.hot_moves = looks % 2 == 0;
    clock.Advance(30 * kMicro);
    peer.Progress(kFlow);
  }
  EXPECT_EQ(looks, 34) << "1000 microseconds, in looks that find nothing";
  EXPECT_EQ(peer.ticks, 1);
}

TEST_F(PeerTest, TheIoThreadHandlesWhatArrivedUnlessSomebodyElseDoes) {
  peer.Arrive();
  bool served = true;
  WithLockTaken([&] { served = peer.Service(); });
  EXPECT_FALSE(served);
  EXPECT_EQ(peer.events, 0);
  EXPECT_TRUE(peer.Service());
  EXPECT_EQ(peer.events, 1);
  EXPECT_EQ(peer.progress_calls(), 0u) << "it is not NCCL's help";
}

TEST_F(PeerTest, ATickReadsFirst) {
  peer.Arrive();
  WithLockTaken([this] { peer.Submit(kFlow, nullptr, 1); });
  peer.Tick();
  EXPECT_EQ(peer.events, 1);
  EXPECT_EQ(peer.ticks, 1);
  EXPECT_EQ(peer.posted, std::vector<uint64_t>{1});
  EXPECT_FALSE(peer.posted_by_job[0]);
}

TEST_F(PeerTest, APollReadsWhatThePollerDoesNotKnowOfToo) {
  peer.Progress(kFlow);
  EXPECT_EQ(peer.port->looks, "r");
  peer.Progress(kFlow);
  EXPECT_EQ(peer.port->looks, "r");
  clock.Advance(50 * kMicro);
  peer.Progress(kFlow);
  EXPECT_EQ(peer.port->looks, "rr");
}

TEST_F(PeerTest, WithoutCallersThePollerHasAllSocketsAgain) {
  peer.Tick();
  EXPECT_EQ(peer.port->looks, "wr");
}

TEST_F(PeerTest, AfterTheEndNothingIsDone) {
  WithLockTaken([this] { peer.Submit(kFlow, nullptr, 1); });
  {
    const PeerLock lock(peer);
    peer.Shut();
    peer.Shut();
  }
  EXPECT_EQ(peer.closed, 1);
  peer.Submit(kFlow, nullptr, 2);
  peer.Progress(kFlow);
  peer.Tick();
  EXPECT_TRUE(peer.Service());
  EXPECT_TRUE(peer.posted.empty());
  EXPECT_EQ(peer.hots + peer.settled + peer.ticks, 0);
}

struct WorkersPeerTest : PeerTest {
  void MoveBytes(uint32_t bytes) {
    const PeerLock lock(busy);
    busy.MoveBytes(bytes);
  }

  static constexpr uint32_t kLargeBytes = tuning::kSmallBytesMost + 1;
  FakeHost host{&clock, true};
  FakePeer busy{&host};
};

TEST_F(WorkersPeerTest, WorkersMoveFromTheFirstLargeMessageToARunOfSmallOnes) {
  busy.Progress(kFlow);
  EXPECT_FALSE(busy.bulk_by_workers());
  MoveBytes(kLargeBytes);
  EXPECT_TRUE(busy.bulk_by_workers());
  clock.Advance(kNanosPerSecond);
  busy.Progress(kFlow);
  EXPECT_TRUE(busy.bulk_by_workers()) << "who waits for more does not end it";
  for (int i = 0; i < tuning::kSmallMessagesMost; ++i) MoveBytes(8);
  EXPECT_FALSE(busy.bulk_by_workers());
}

TEST_F(WorkersPeerTest, ALargeRequestCountsBeforeItIsPosted) {
  busy.counts_requests = true;
  busy.Submit(kFlow, nullptr, kLargeBytes - 1);
  EXPECT_FALSE(busy.bulk_by_workers());
  busy.Submit(kFlow, nullptr, kLargeBytes);
  EXPECT_TRUE(busy.bulk_by_workers());
}

TEST_F(WorkersPeerTest, WhileLargeMessagesComeTheCallerPollsOtherSocketsSoon) {
  busy.Progress(kFlow);
  MoveBytes(kLargeBytes);
  busy.hot_moves = true;
  busy.Progress(kFlow);
  busy.hot_moves = false;
  busy.Arrive();
  clock.Advance(50 * kMicro);
  busy.Progress(kFlow);
  EXPECT_EQ(busy.events, 1);
}

TEST_F(PeerTest, WithoutWorkersItIsTheCallersThatMoveBulk) {
  {
    const PeerLock lock(peer);
    peer.MoveBytes(1 << 20);
  }
  EXPECT_FALSE(peer.bulk_by_workers());
}

TEST_F(WorkersPeerTest, CallersLeaveTheLockToTheWorkers) {
  MoveBytes(kLargeBytes);
  busy.Progress(kFlow);
  const uint64_t before = busy.progress_calls();
  for (int i = 0; i < 10; ++i) busy.Progress(kFlow);
  EXPECT_EQ(busy.progress_calls(), before);
  busy.Arrive();
  clock.Advance(20 * kMicro);
  busy.Progress(kFlow);
  EXPECT_EQ(busy.progress_calls(), before + 1);
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
  peer.Progress(kFlow);
  ASSERT_EQ(peer.posted.size(), kThreads * kEach);
  std::vector<uint64_t> next(kThreads, 0);
  for (const uint64_t value : peer.posted) EXPECT_EQ(value % kEach, next[value / kEach]++);
}

}  // namespace
}  // namespace r2cc::net
