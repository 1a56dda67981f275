#include "netplugin/link/lane_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace r2cc::net {
namespace {

constexpr Nanos kSilence = 250 * kNanosPerMs;

// Lanes that answer, lanes that do not, and a peer that may stop altogether.
struct Bench {
  LaneWatch watch{kSilence};
  Nanos now = kNanosPerSecond;
  std::set<Lane> dead;
  bool stopped = false;
  std::vector<LaneWatch::Ping> in_flight;
  std::vector<Lane> given_up;
  int pings = 0;

  explicit Bench(int links) {
    watch.Up(kOobLane, now);
    for (Lane lane = 0; lane < links; ++lane) watch.Up(lane, now);
  }

  void Run(Nanos duration, bool outstanding = true) {
    for (const Nanos end = now + duration; now < end; now += 10 * kNanosPerMs) {
      if (!stopped) {
        for (const LaneWatch::Ping& ping : in_flight)
          if (!dead.contains(ping.lane)) watch.Pong(ping.lane, ping.number, now);
        std::erase_if(in_flight, [&](const LaneWatch::Ping& ping) { return !dead.contains(ping.lane); });
      }
      const LaneWatch::Verdict verdict = watch.Tick(outstanding, now);
      pings += static_cast<int>(verdict.pings.size());
      in_flight.insert(in_flight.end(), verdict.pings.begin(), verdict.pings.end());
      for (const Lane lane : verdict.silent) {
        given_up.push_back(lane);
        watch.Down(lane);
      }
    }
  }
};

TEST(LaneWatch, ASilentLaneIsGivenUpWithinTheSilence) {
  Bench bench(4);
  bench.dead = {2};
  bench.Run(kSilence + 50 * kNanosPerMs);
  EXPECT_EQ(bench.given_up, std::vector<Lane>{2});
}

TEST(LaneWatch, AnsweringLanesAreKept) {
  Bench bench(4);
  bench.Run(60 * kNanosPerSecond);
  EXPECT_TRUE(bench.given_up.empty());
}

TEST(LaneWatch, WithoutARequestNobodyIsAsked) {
  Bench bench(4);
  bench.dead = {0, 1, 2, 3};
  bench.Run(10 * kNanosPerSecond, false);
  EXPECT_EQ(bench.pings, 0);
  EXPECT_TRUE(bench.given_up.empty());
}

TEST(LaneWatch, AStoppedPeerIsWaitedForWithoutLimit) {
  Bench bench(4);
  bench.Run(kNanosPerSecond);
  bench.stopped = true;
  bench.Run(60 * kNanosPerSecond);
  EXPECT_TRUE(bench.given_up.empty());
  bench.stopped = false;
  bench.Run(10 * kNanosPerSecond);
  EXPECT_TRUE(bench.given_up.empty());
}

// The peer may be stopped between two answers: lane 0's ping answered, lane 1's not. That is no evidence against lane 1.
TEST(LaneWatch, APeerStoppedBetweenTwoAnswersIsNoFault) {
  for (int cut = 0; cut < 40; ++cut) {
    Bench bench(4);
    bench.Run(cut * 10 * kNanosPerMs);
    const auto lane_zero =
        std::find_if(bench.in_flight.begin(), bench.in_flight.end(), [](const LaneWatch::Ping& p) { return p.lane == 0; });
    if (lane_zero != bench.in_flight.end()) {
      bench.watch.Pong(0, lane_zero->number, bench.now);
      bench.in_flight.erase(lane_zero);
    }
    bench.stopped = true;
    bench.Run(20 * kNanosPerSecond);
    EXPECT_TRUE(bench.given_up.empty()) << "stopped after " << cut * 10 << " ms";
    bench.stopped = false;
    bench.Run(2 * kNanosPerSecond);
    EXPECT_TRUE(bench.given_up.empty()) << "woken after a stop at " << cut * 10 << " ms";
  }
}

// It answers on one lane after the other: for a while one lane does while the others do not.
TEST(LaneWatch, APeerThatWakesUpSlowlyIsNoFault) {
  Bench bench(4);
  bench.Run(kNanosPerSecond);
  bench.stopped = true;
  bench.Run(20 * kNanosPerSecond);
  bench.stopped = false;
  bench.dead = {kOobLane, 0, 1, 2, 3};
  for (const Lane lane : {2, kOobLane, 0, 3, 1}) {
    bench.dead.erase(lane);
    bench.Run(20 * kNanosPerMs);
  }
  bench.Run(10 * kNanosPerSecond);
  EXPECT_TRUE(bench.given_up.empty());
}

// Frames come all the time on the other link, and there is no out-of-band lane: its answers to pings are what counts.
TEST(LaneWatch, AChattyLaneIsWitnessEnough) {
  LaneWatch watch(kSilence);
  Nanos now = kNanosPerSecond;
  watch.Up(0, now);
  watch.Up(1, now);
  std::vector<Lane> silent;
  for (const Nanos end = now + kSilence + 50 * kNanosPerMs; now < end && silent.empty(); now += 5 * kNanosPerMs) {
    watch.Heard(0, now);
    const LaneWatch::Verdict verdict = watch.Tick(true, now);
    for (const LaneWatch::Ping& ping : verdict.pings)
      if (ping.lane == 0) watch.Pong(0, ping.number, now + kNanosPerMs);
    silent = verdict.silent;
  }
  EXPECT_EQ(silent, std::vector<Lane>{1});
}

TEST(LaneWatch, EveryLaneDeadIsTheDeadlinesBusinessNotASilentLane) {
  Bench bench(2);
  bench.dead = {kOobLane, 0, 1};
  bench.Run(5 * kNanosPerSecond);
  EXPECT_TRUE(bench.given_up.empty());
}

TEST(LaneWatch, KnowsWhenAnythingWasHeardLastAlsoOnLanesThatAreGone) {
  LaneWatch watch(kSilence);
  watch.Up(0, kNanosPerSecond);
  watch.Moved(0);
  EXPECT_EQ(watch.heard(), kNanosPerSecond);
  watch.Heard(0, 2 * kNanosPerSecond);
  watch.Down(0);
  EXPECT_EQ(watch.heard(), 2 * kNanosPerSecond);
  watch.Tick(true, 3 * kNanosPerSecond);
  EXPECT_EQ(watch.heard(), 2 * kNanosPerSecond) << "a request is nothing heard";
}

}  // namespace
}  // namespace r2cc::net
