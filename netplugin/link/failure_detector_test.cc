#include "netplugin/link/failure_detector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace r2cc::net {
namespace {

constexpr Nanos kSilence = 250 * kNanosPerMs;

// Channels that answer, channels that do not, and a peer that may stop altogether.
struct Bench {
  FailureDetector detector{kSilence};
  Nanos now = kNanosPerSecond;
  std::set<ChannelId> dead;
  bool stopped = false;
  std::vector<FailureDetector::Ping> in_flight;
  std::vector<ChannelId> given_up;
  int pings = 0;

  explicit Bench(int links) {
    detector.Up(kOobChannel, now);
    for (ChannelId channel = 0; channel < links; ++channel) detector.Up(channel, now);
  }

  void Run(Nanos duration, bool outstanding = true) {
    for (const Nanos end = now + duration; now < end; now += 10 * kNanosPerMs) {
      if (!stopped) {
        for (const FailureDetector::Ping& ping : in_flight)
          if (!dead.contains(ping.channel)) detector.Pong(ping.channel, ping.number, now);
        std::erase_if(in_flight, [&](const FailureDetector::Ping& ping) { return !dead.contains(ping.channel); });
      }
      const FailureDetector::Verdict verdict = detector.Tick(outstanding, now);
      pings += static_cast<int>(verdict.pings.size());
      in_flight.insert(in_flight.end(), verdict.pings.begin(), verdict.pings.end());
      for (const ChannelId channel : verdict.silent) {
        given_up.push_back(channel);
        detector.Down(channel);
      }
    }
  }
};

TEST(FailureDetector, ASilentChannelIsGivenUpWithinTheSilence) {
  Bench bench(4);
  bench.dead = {2};
  bench.Run(kSilence + 50 * kNanosPerMs);
  EXPECT_EQ(bench.given_up, std::vector<ChannelId>{2});
}

TEST(FailureDetector, AnsweringChannelsAreKept) {
  Bench bench(4);
  bench.Run(60 * kNanosPerSecond);
  EXPECT_TRUE(bench.given_up.empty());
}

TEST(FailureDetector, WithoutARequestNobodyIsAsked) {
  Bench bench(4);
  bench.dead = {0, 1, 2, 3};
  bench.Run(10 * kNanosPerSecond, false);
  EXPECT_EQ(bench.pings, 0);
  EXPECT_TRUE(bench.given_up.empty());
}

TEST(FailureDetector, AStoppedPeerIsWaitedForWithoutLimit) {
  Bench bench(4);
  bench.Run(kNanosPerSecond);
  bench.stopped = true;
  bench.Run(60 * kNanosPerSecond);
  EXPECT_TRUE(bench.given_up.empty());
  bench.stopped = false;
  bench.Run(10 * kNanosPerSecond);
  EXPECT_TRUE(bench.given_up.empty());
}

// The peer may be stopped between two answers: channel 0's ping answered, channel 1's not. That is no evidence against channel 1.
TEST(FailureDetector, APeerStoppedBetweenTwoAnswersIsNoFault) {
  for (int cut = 0; cut < 40; ++cut) {
    Bench bench(4);
    bench.Run(cut * 10 * kNanosPerMs);
    const auto channel_zero =
        std::find_if(bench.in_flight.begin(), bench.in_flight.end(), [](const FailureDetector::Ping& p) { return p.channel == 0; });
    if (channel_zero != bench.in_flight.end()) {
      bench.detector.Pong(0, channel_zero->number, bench.now);
      bench.in_flight.erase(channel_zero);
    }
    bench.stopped = true;
    bench.Run(20 * kNanosPerSecond);
    EXPECT_TRUE(bench.given_up.empty()) << "stopped after " << cut * 10 << " ms";
    bench.stopped = false;
    bench.Run(2 * kNanosPerSecond);
    EXPECT_TRUE(bench.given_up.empty()) << "woken after a stop at " << cut * 10 << " ms";
  }
}

// It answers on one channel after the other: for a while one channel does while the others do not.
TEST(FailureDetector, APeerThatWakesUpSlowlyIsNoFault) {
  Bench bench(4);
  bench.Run(kNanosPerSecond);
  bench.stopped = true;
  bench.Run(20 * kNanosPerSecond);
  bench.stopped = false;
  bench.dead = {kOobChannel, 0, 1, 2, 3};
  for (const ChannelId channel : {2, kOobChannel, 0, 3, 1}) {
    bench.dead.erase(channel);
    bench.Run(20 * kNanosPerMs);
  }
  bench.Run(10 * kNanosPerSecond);
  EXPECT_TRUE(bench.given_up.empty());
}

// A rail's bytes stand still for a while, and its peer is stopped or busy before, meanwhile or after: the two times do not add up.
TEST(FailureDetector, ARailThatStallsDuringAPauseOfItsPeerIsNoFault) {
  constexpr Nanos kMs = kNanosPerMs, kStandsStill = 140 * kMs;
  for (Nanos pause = 50 * kMs; pause <= 150 * kMs; pause += 10 * kMs)
    for (Nanos stands_still_at = -kStandsStill; stands_still_at <= pause; stands_still_at += 10 * kMs)
      for (Nanos before = 0; before < 70 * kMs; before += 10 * kMs) {
        Bench bench(4);
        bench.Run(200 * kMs + before);
        const Nanos paused_at = bench.now + kStandsStill;
        for (Nanos at = -kStandsStill; at < 500 * kMs; at += 10 * kMs) {
          bench.stopped = at >= 0 && at < pause;
          bench.dead.erase(2);
          if (at >= stands_still_at && at < stands_still_at + kStandsStill) bench.dead.insert(2);
          bench.Run(10 * kMs);
        }
        ASSERT_TRUE(bench.given_up.empty()) << "stands still " << (stands_still_at / kMs) << " ms after the begin of a pause of "
                                            << pause / kMs << " ms at " << paused_at / kMs;
      }
}

// Frames come all the time on the other link, and there is no out-of-band channel: its answers to pings are what counts.
TEST(FailureDetector, AChattyChannelIsWitnessEnough) {
  FailureDetector detector(kSilence);
  Nanos now = kNanosPerSecond;
  detector.Up(0, now);
  detector.Up(1, now);
  std::vector<ChannelId> silent;
  for (const Nanos end = now + kSilence + 50 * kNanosPerMs; now < end && silent.empty(); now += 5 * kNanosPerMs) {
    detector.Received(0, now);
    const FailureDetector::Verdict verdict = detector.Tick(true, now);
    for (const FailureDetector::Ping& ping : verdict.pings)
      if (ping.channel == 0) detector.Pong(0, ping.number, now + kNanosPerMs);
    silent = verdict.silent;
  }
  EXPECT_EQ(silent, std::vector<ChannelId>{1});
}

TEST(FailureDetector, EveryChannelDeadIsTheDeadlinesBusinessNotASilentChannel) {
  Bench bench(2);
  bench.dead = {kOobChannel, 0, 1};
  bench.Run(5 * kNanosPerSecond);
  EXPECT_TRUE(bench.given_up.empty());
}

TEST(FailureDetector, KnowsWhenAnythingWasReceivedLastAlsoOnChannelsThatAreGone) {
  FailureDetector detector(kSilence);
  detector.Up(0, kNanosPerSecond);
  detector.Delivered(0, kNanosPerSecond);
  EXPECT_EQ(detector.last_received(), kNanosPerSecond);
  detector.Received(0, 2 * kNanosPerSecond);
  detector.Down(0);
  EXPECT_EQ(detector.last_received(), 2 * kNanosPerSecond);
  detector.Tick(true, 3 * kNanosPerSecond);
  EXPECT_EQ(detector.last_received(), 2 * kNanosPerSecond) << "a request is nothing heard";
}

// A link whose data is not acknowledged, and whose control channel answers.
class StalledLinkTest : public testing::Test {
 protected:
  // Every 25 ms the link's facts come, and every 10 ms a tick.
  void Run(Nanos duration, bool confirmed = true) {
    for (const Nanos end = bench_.now + duration; bench_.now < end; bench_.now += 10 * kNanosPerMs) {
      if (since_ != 0) bench_.detector.Unacknowledged(1, since_, confirmed);
      if (!bench_.stopped) {
        for (const FailureDetector::Ping& ping : in_flight_) bench_.detector.Pong(ping.channel, ping.number, bench_.now);
        in_flight_.clear();
      }
      const FailureDetector::Verdict verdict = bench_.detector.Tick(true, bench_.now);
      in_flight_.insert(in_flight_.end(), verdict.pings.begin(), verdict.pings.end());
      if (!verdict.stalled.empty() && stalled_at_ == 0) stalled_at_ = bench_.now;
      for (const ChannelId channel : verdict.stalled) EXPECT_EQ(channel, 1);
      EXPECT_TRUE(verdict.silent.empty());
    }
  }

  Bench bench_{2};
  Nanos since_ = 0;
  Nanos stalled_at_ = 0;
  std::vector<FailureDetector::Ping> in_flight_;
};

TEST_F(StalledLinkTest, IsGivenUpWithinTheSilenceThoughAllChannelsAnswer) {
  Run(kNanosPerSecond);
  since_ = bench_.now;
  Run(kNanosPerSecond);
  EXPECT_GE(stalled_at_ - since_, kSilence);
  EXPECT_LE(stalled_at_ - since_, kSilence + 50 * kNanosPerMs);
}

TEST_F(StalledLinkTest, IsKeptWhileItsKernelHasNotSentAgain) {
  since_ = bench_.now;
  Run(10 * kNanosPerSecond, false);
  EXPECT_EQ(stalled_at_, 0);
}

TEST_F(StalledLinkTest, IsKeptWhileItMoves) {
  for (int i = 0; i < 100; ++i) {
    since_ = bench_.now;
    Run(kSilence - 10 * kNanosPerMs);
  }
  EXPECT_EQ(stalled_at_, 0);
}

TEST_F(StalledLinkTest, IsKeptWhileItsPeerAnswersNowhere) {
  Run(kNanosPerSecond);
  since_ = bench_.now;
  bench_.stopped = true;
  Run(60 * kNanosPerSecond);
  EXPECT_EQ(stalled_at_, 0);
  // The peer goes on, and takes a moment to acknowledge: its pause is no silence of the link.
  bench_.stopped = false;
  Run(kSilence / 2);
  EXPECT_EQ(stalled_at_, 0);
  since_ = 0;
  bench_.detector.Unacknowledged(1, 0, false);
  Run(kNanosPerSecond);
  EXPECT_EQ(stalled_at_, 0);
}

TEST_F(StalledLinkTest, TheOnlyChannelOfAPeerIsItsOwnWitness) {
  bench_.detector.Down(kOobChannel);
  bench_.detector.Down(0);
  since_ = bench_.now;
  Run(kNanosPerSecond);
  EXPECT_GE(stalled_at_ - since_, kSilence);
  EXPECT_LE(stalled_at_ - since_, kSilence + 50 * kNanosPerMs);
}

// Its frames are swallowed on their way here, and chunks move: the queue of a rail excuses it for a while and not for ever.
TEST(FailureDetector, BulkThatMovesExcusesAChannelForAWhile) {
  Bench bench(2);
  bench.Run(kNanosPerSecond);
  bench.dead = {1};
  const Nanos died = bench.now;
  while (bench.given_up.empty() && bench.now - died < 60 * kNanosPerSecond) {
    bench.detector.Delivered(1, bench.now);
    bench.Run(10 * kNanosPerMs);
  }
  EXPECT_EQ(bench.given_up, std::vector<ChannelId>{1});
  EXPECT_GE(bench.now - died, 4 * kSilence);
  EXPECT_LE(bench.now - died, 6 * kSilence);
}

}  // namespace
}  // namespace r2cc::net
