#include "netplugin/link/cross_rail.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "netplugin/flow/tuning.h"

namespace r2cc::net {
namespace {

const auto kAny = [](RailPair pair) { return pair.local != pair.remote ? std::optional<Nanos>(0) : std::nullopt; };

TEST(CrossRailLink, NothingIsLeftOverNothingIsJoined) { EXPECT_TRUE(ChooseCrossRailLinks({}, {}, {}, kAny).empty()); }

TEST(CrossRailLink, OneEndsLossLeavesNoPair) {
  const std::array<uint16_t, 1> remote{2};
  EXPECT_TRUE(ChooseCrossRailLinks({}, remote, {}, kAny).empty());
}

TEST(CrossRailLink, DifferentLossesAreJoinedAcross) {
  const std::array<uint16_t, 1> local{1}, remote{0};
  EXPECT_EQ(ChooseCrossRailLinks(local, remote, {}, kAny), (std::vector<RailPair>{{1, 0}}));
}

TEST(CrossRailLink, NobodyKnowsWhichEndLostWhat) {
  const std::array<uint16_t, 2> both{0, 1};
  EXPECT_EQ(ChooseCrossRailLinks(both, both, {}, kAny), (std::vector<RailPair>{{0, 1}, {1, 0}}));
}

TEST(CrossRailLink, ARailIsUsedOnce) {
  const std::array<uint16_t, 3> local{0, 1, 2};
  const std::array<uint16_t, 1> remote{3};
  EXPECT_EQ(ChooseCrossRailLinks(local, remote, {}, kAny).size(), 1u);
  const std::array<RailPair, 1> present{{{2, 3}}};
  EXPECT_TRUE(ChooseCrossRailLinks(local, remote, present, kAny).empty());
}

TEST(CrossRailLink, APairThatFailedLatelyIsLeftAlone) {
  const std::array<uint16_t, 1> local{1};
  const std::array<uint16_t, 2> remote{0, 2};
  const auto failed = [](RailPair pair) { return pair == RailPair{1, 0} ? std::nullopt : std::optional<Nanos>(0); };
  EXPECT_EQ(ChooseCrossRailLinks(local, remote, {}, failed), (std::vector<RailPair>{{1, 2}}));
}

TEST(CrossRailLink, ThePairWhoseTurnItIsComesFirst) {
  const std::array<uint16_t, 1> local{1};
  const std::array<uint16_t, 3> remote{0, 2, 3};
  const auto turn = [](RailPair pair) { return std::optional<Nanos>(pair.remote == 2 ? 5 : 7); };
  EXPECT_EQ(ChooseCrossRailLinks(local, remote, {}, turn), (std::vector<RailPair>{{1, 2}}));
}

// Attempts of a second each at one of many pairs: all are tried, and none waits for a minute.
TEST(CrossRailLink, NoPairStarvesWhereEachMayBeTheLastWay) {
  constexpr uint16_t kRemotes = 8;
  std::vector<uint16_t> remotes(kRemotes);
  std::iota(remotes.begin(), remotes.end(), uint16_t{0});
  const std::array<uint16_t, 1> local{0};
  BackOffTable book;
  std::vector<Nanos> tried(kRemotes, 0);
  for (Nanos now = 0; now < 600 * kNanosPerSecond; now += kNanosPerSecond) {
    const auto chosen = ChooseCrossRailLinks(local, remotes, {}, [&](RailPair pair) { return book.Turn(pair, true, now); });
    for (const RailPair& pair : chosen) {
      book.Failed(pair, now + kNanosPerSecond);
      tried[pair.remote] = now;
    }
    for (const Nanos last : tried) EXPECT_LE(now - last, (kRemotes + 2) * kNanosPerSecond);
  }
}

TEST(CrossRailLink, AFailedPairIsTriedAgainEverMoreSeldom) {
  BackOffTable book;
  Nanos now = kNanosPerSecond, before = 0;
  EXPECT_TRUE(book.Turn({0, 1}, false, now));
  for (int i = 0; i < 10; ++i) {
    book.Failed({0, 1}, now);
    Nanos wait = 0;
    while (!book.Turn({0, 1}, false, now + wait)) wait += kNanosPerSecond;
    EXPECT_GE(wait, before);
    EXPECT_TRUE(book.Turn({1, 0}, false, now)) << "another pair";
    EXPECT_TRUE(book.Turn({0, 1}, true, now + tuning::kRetryWaitMost)) << "the last way";
    before = wait;
    now += wait;
  }
  EXPECT_EQ(before, tuning::kPairWaitMost);
  book.Failed({0, 1}, now);
  book.Worked({0, 1});
  EXPECT_TRUE(book.Turn({0, 1}, false, now));
}

std::vector<HomeState> Homes(std::vector<bool> up) {
  std::vector<HomeState> homes;
  for (uint16_t i = 0; i < up.size(); ++i) homes.push_back({{i, i}, up[i], !up[i]});
  return homes;
}

TEST(RailsForCrossRail, AreThoseThatWorkAndThatNoHomeLinkUses) {
  const FreeRails free = RailsForCrossRail(Homes({false, false, true}), {true, false, true}, {false, true, true});
  EXPECT_EQ(free.local, std::vector<uint16_t>{0});
  EXPECT_EQ(free.remote, std::vector<uint16_t>{1});
}

TEST(RailsForCrossRail, ThereAreNoneWhileNoHomeLinkIsLost) {
  std::vector<HomeState> homes = Homes({true, true});
  homes[1].up = false;  // it is being opened for the first time
  const FreeRails free = RailsForCrossRail(homes, {true, true}, {true, true});
  EXPECT_TRUE(free.local.empty() && free.remote.empty());
}

TEST(Retired, ACrossRailLinkIsWhenBothItsRailsHaveTheirOwnLinkAgain) {
  EXPECT_FALSE(IsRetired({0, 1}, Homes({false, false})));
  EXPECT_FALSE(IsRetired({0, 1}, Homes({false, true})));
  EXPECT_FALSE(IsRetired({0, 1}, Homes({true, false})));
  EXPECT_TRUE(IsRetired({0, 1}, Homes({true, true})));
}

}  // namespace
}  // namespace r2cc::net
