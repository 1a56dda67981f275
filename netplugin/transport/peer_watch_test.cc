#include "netplugin/transport/peer_watch.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "netplugin/transport/fake_peer.h"

namespace r2cc::net {
namespace {

constexpr FlowId kFlow = 1;

struct PeerWatchTest : testing::Test {
  PeerWatchTest() { watch.Add(&peer); }
  // What the I/O thread does, with something arriving meanwhile. True if it looked after the peer.
  bool Wakes() {
    const int before = peer.events;
    peer.Arrive();
    poller.Wait(0);
    watch.ServiceMore();
    return peer.events > before;
  }
  FakeClock clock;
  FakeHost host{&clock};
  FakePeer peer{&host};
  Poller poller;
  PeerWatch watch{&poller};
};

TEST_F(PeerWatchTest, ArrivingBytesWakeAPeerThatNobodyDrives) {
  EXPECT_TRUE(Wakes());
  EXPECT_TRUE(Wakes());
}

TEST_F(PeerWatchTest, APeerThatNcclDrivesIsLetGoUntilItDrivesItNoMore) {
  watch.WaitMs();
  peer.Progress(kFlow);
  EXPECT_FALSE(Wakes()) << "nor does it serve what comes first";
  EXPECT_FALSE(Wakes());
  EXPECT_EQ(watch.WaitMs(), 10) << "it looks whether it is driven still";
  EXPECT_FALSE(Wakes());
  watch.WaitMs();
  EXPECT_TRUE(Wakes());
}

TEST_F(PeerWatchTest, WaitsAsLongAsItsPeersCan) {
  EXPECT_EQ(watch.WaitMs(), 5) << "a new peer is expected to do something";
  watch.Tick();
  EXPECT_EQ(watch.WaitMs(), 100);
  watch.Expect(&peer);
  EXPECT_EQ(watch.WaitMs(), 5);
  peer.settle_more = true;
  Wakes();
  EXPECT_EQ(watch.WaitMs(), 0);
}

TEST_F(PeerWatchTest, LeftoversAreDoneAfterTheWait) {
  peer.settle_more = true;
  peer.Tick();
  const int before = peer.settled;
  watch.ServiceMore();
  EXPECT_EQ(peer.settled, before + 1);
}

TEST_F(PeerWatchTest, TicksPeersThatNobodyDrivesAndReportsWhichAreOver) {
  EXPECT_TRUE(watch.Tick().empty());
  EXPECT_EQ(peer.ticks, 1);
  peer.Progress(kFlow);
  const int before = peer.ticks;
  watch.Tick();
  EXPECT_EQ(peer.ticks, before) << "who comes all the time does it himself";
  peer.is_over = true;
  EXPECT_EQ(watch.Tick(), std::vector<Peer*>{&peer});
  watch.Remove(&peer);
  EXPECT_TRUE(watch.Tick().empty());
  EXPECT_FALSE(Wakes());
}

}  // namespace
}  // namespace r2cc::net
